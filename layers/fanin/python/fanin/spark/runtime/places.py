"""Paths: as people give them, which name the same place, which Spark takes for patterns, and where they lead.

Tasks reach S3 with pyarrow, with the credentials, region and endpoint that Spark has been given.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import SparkSession

from fanin.client.local_stack import IGNORE_ENDPOINTS
from fanin.domain.limits import shown
from fanin.entry.settings import Settings
from fanin.errors import InvalidRequest

_SHORTENED: Final = re.compile(r"[a-z][a-z0-9+.-]+:/(?!/)", re.IGNORECASE)


def path_of(what: str, given: str | os.PathLike[str]) -> str:
    """The text of a path."""
    path = given if isinstance(given, str) else os.fspath(given) if isinstance(given, os.PathLike) else None
    if not isinstance(path, str) or not path.strip():
        raise InvalidRequest(f"{what} must be a path, such as s3://bucket/data or a Path, not {shown(given)}")
    if path is not given and _SHORTENED.match(path):
        scheme, _, rest = path.partition(":/")
        raise InvalidRequest(f"{what} is {path}: a Path has one slash; give the text {scheme}://{rest}")
    return path


def canonical(uri: str) -> str:
    """A URI, with a slash at its end, that is the same for all names of a place on S3 or on this machine."""
    scheme, colon, rest = uri.partition(":")
    if scheme == "file":
        rest = str(Path(rest).resolve())
    return f"{'s3' if scheme in S3 else scheme}{colon}{rest.rstrip('/')}/"


_GLOB: Final = frozenset("*?[]{}\\")


def is_pattern(path: str) -> bool:
    """Whether Spark would take a path for a pattern."""
    return bool(_GLOB & set(path))


def escaped(path: str) -> str:
    """A path that Spark does not take for a pattern."""
    return "".join(f"\\{letter}" if letter in _GLOB else letter for letter in path)


S3: Final = ("s3", "s3a", "s3n")
"""Schemes of S3, as Hadoop's connectors have them."""
_SCHEMES: Final = tuple(f"{scheme}://" for scheme in S3)
BUCKETS: Final = (*S3, "gs")
"""Schemes of stores of objects, where a path names a bucket, and a file is there when it is closed."""
_AMAZON: Final = "amazonaws.com"


def file_system(path: str, spark: SparkSession) -> Any:
    """Find the file system of a path, which takes that as ``place_of`` has it and can be sent to tasks.

    Raises:
        OSError: the region of a bucket is not known; names the bucket.
    """
    if path.startswith(_SCHEMES):
        place = path.partition("://")[2].rstrip("/")
        bucket = place.partition("/")[0]
        environment = Settings.from_env().environment
        context: Any = spark.sparkContext
        conf = context._jsc.hadoopConfiguration().get  # noqa: SLF001  Python has no other way to it
        options = s3_options(bucket, conf, environment)
        if "region" not in options and _AMAZON in options.get("endpoint_override", _AMAZON):
            return _looked_for(place, options, environment)
        return pafs.S3FileSystem(**options)
    if is_local(path):
        return pafs.LocalFileSystem()
    return pafs.FileSystem.from_uri(quote(path, safe="/:"))[0]


def place_of(path: str) -> str:
    """A path as its file system takes it; a URI may have characters as they are, such as spaces."""
    if not is_local(path):
        scheme, _, rest = path.partition("://")
        return rest if scheme in BUCKETS else f"/{rest.partition('/')[2]}"
    local = path.removeprefix("file:")
    return f"/{local.lstrip('/')}" if local.startswith("/") else str(Path(local).absolute())


def is_local(path: str) -> bool:
    """Whether a path is of this machine."""
    return "://" not in path or path.startswith("file:")


_T = TypeVar("_T")
_AT_ONCE: Final = 32
"""Files of a store that are read at the same time; each takes some hundredths of a second."""


def read_here(spark: SparkSession, paths: Sequence[str], read: Callable[[Any, str], _T]) -> list[_T] | None:
    """Read small files of one file system, or their ends: pyarrow opens 2,000 in a tenth of a second.

    None if pyarrow cannot read one of them, perhaps because only Spark has the credentials.
    """

    def one(path: str) -> _T:
        with system.open_input_file(place_of(path)) as opened:
            return read(opened, path)

    if not paths:
        return []
    try:
        system = file_system(paths[0], spark)
        if all(map(is_local, paths)):  # where threads gain nothing
            return [one(path) for path in paths]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(one, paths))
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None


def s3_options(
    bucket: str, conf: Callable[[str], str | None], environment: Mapping[str, str]
) -> dict[str, Any]:
    """What pyarrow's ``S3FileSystem`` has to be told to reach a bucket like Spark does.

    Settings of S3A for this bucket come before those for all buckets, and these before the environment, which
    is all that there is on EMR: its own file system takes the credentials of the job's role, as pyarrow does
    where it is told none.
    """

    def setting(name: str) -> str | None:
        return conf(f"fs.s3a.bucket.{bucket}.{name}") or conf(f"fs.s3a.{name}") or None

    endpoint = setting("endpoint")
    if endpoint and "://" not in endpoint:
        plain = (setting("connection.ssl.enabled") or "true").lower() == "false"
        endpoint = f"{'http' if plain else 'https'}://{endpoint}"
    # The endpoint of all regions does not say where a bucket is.
    if not endpoint or endpoint.partition("://")[2].rstrip("/") == f"s3.{_AMAZON}":
        endpoint = None
        if environment.get(IGNORE_ENDPOINTS, "").lower() != "true":
            endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = setting("endpoint.region") or (_own_region(environment) if endpoint else None)
    options: dict[str, Any] = {"region": region}
    if endpoint:
        scheme, _, place = endpoint.partition("://")
        virtual = (setting("path.style.access") or "true").lower() == "false"
        options |= {"scheme": scheme, "endpoint_override": place.rstrip("/")}
        options |= {"force_virtual_addressing": True} if virtual else {}
    if (key := setting("access.key")) and (secret := setting("secret.key")):
        options |= {"access_key": key, "secret_key": secret, "session_token": setting("session.token")}
    elif "AnonymousAWSCredentialsProvider" in (setting("aws.credentials.provider") or ""):
        options["anonymous"] = True
    return {name: value for name, value in options.items() if value is not None}


def _looked_for(place: str, options: Mapping[str, Any], environment: Mapping[str, str]) -> Any:
    """S3 in the region of a bucket, of which nobody has said where it is.

    Most buckets are in the job's own region, where S3 says whether this one is. pyarrow asks S3 in us-east-1,
    which jobs do not reach that reach S3 in their own region only, as in a VPC without NAT, and waits for its
    answer for minutes.
    """
    bucket = place.partition("/")[0]
    if not (region := _own_region(environment)):
        return pafs.S3FileSystem(**options, region=pafs.resolve_s3_region(bucket))
    system = pafs.S3FileSystem(**options, region=region)
    try:
        system.get_file_info(place)
    except OSError as error:
        if "configured region is" in str(error):  # and that of the bucket is another
            with suppress(OSError):
                return pafs.S3FileSystem(**options, region=pafs.resolve_s3_region(bucket))
            raise
    return system


def _own_region(environment: Mapping[str, str]) -> str | None:
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
