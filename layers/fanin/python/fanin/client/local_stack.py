"""The local stack, for clients: the file that says where it is, the folders that had one, and the profile.

``fanin local up`` writes ``.fanin/local.json``. ``Tracker.local()``, ``FANIN_PROFILE=local`` and
``fanin --local`` read it. They search the current folder and those above it first, then the folders that had
a stack. These are in ``fanin/local.json`` in the user's state folder: ``$XDG_STATE_HOME``, by default
``~/.local/state`` (https://specifications.freedesktop.org/basedir-spec). A folder without a description has
no stack any more.

``FANIN_PROFILE=local`` puts the local stack as environment variables in place of those of another stack.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin import names
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured
from fanin.names import ENV_PROFILE

if TYPE_CHECKING:
    import boto3


ENV_STATE: Final = "XDG_STATE_HOME"
MOST_ROOTS: Final = 20


def remember(root: Path) -> None:
    """Put a folder in front of those that are remembered.

    Raises:
        OSError: the state folder cannot be written.
    """
    file = _roots_file()
    roots = [root.absolute(), *(other for other in remembered() if other != root.absolute())]
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({"roots": [str(one) for one in roots[:MOST_ROOTS]]}, indent=2) + "\n")
    draft.replace(file)


def remembered() -> list[Path]:
    """The folders, the one in which a stack was started last first; none if the file cannot be read."""
    try:
        return [Path(root) for root in json.loads(_roots_file().read_text(encoding="utf-8"))["roots"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _roots_file() -> Path:
    """The file; a relative ``XDG_STATE_HOME`` does not count, as the specification says.

    Raises:
        OSError: the user has no home.
    """
    named = Path(os.environ.get(ENV_STATE, ""))
    if named.is_absolute():
        return named / "fanin" / "local.json"
    try:
        return Path.home() / ".local" / "state" / "fanin" / "local.json"
    except RuntimeError as error:
        raise FileNotFoundError("the user has no home folder") from error


FOLDER: Final = ".fanin"
FILE: Final = "local.json"


@dataclass(frozen=True, kw_only=True)
class Stack(Settings):
    """A stack deployed to the emulator; as settings, it names each part of it.

    Attributes:
        endpoint_url: the emulator, for every AWS service.
        region: AWS region.
        account: AWS account number, 12 digits.
        access_key_id: the key of the account's root user; the key of an IAM user works too.
        secret_access_key: the secret of that key.
        auth: whether the emulator verifies signatures and enforces policies.
        pid: process id of the emulator.
        port: TCP port of the emulator.
        log_file: path of the emulator's log.
        fingerprint: hash of the assembly that was deployed.
        outputs: of all stacks that were deployed together, by name.
    """

    endpoint_url: str
    region: str
    account: str
    access_key_id: str
    secret_access_key: str
    auth: bool
    pid: int
    port: int
    log_file: str
    fingerprint: str
    outputs: dict[str, str]

    @property
    def work_queue_url(self) -> str:
        """URL of a queue for work; a message that lands in its dead-letter queue fails its item."""
        return self.environment[names.ENV_WORK_QUEUE_URL]

    def session(self) -> boto3.Session:
        """A boto3 session with the root user's keys, whatever the environment holds."""
        import boto3  # noqa: PLC0415 - takes longer than a whole command that only calls the API

        return boto3.Session(self.access_key_id, self.secret_access_key, region_name=self.region)

    def client(self, service: str) -> Any:
        """A boto3 client for the stack, with the root user's keys; annotate the result with its type stub.

        Args:
            service: boto3's name of the service, such as ``sqs``.
        """
        return self.session().client(service, endpoint_url=self.endpoint_url)


_FIELDS: Final = tuple(field.name for field in fields(Stack))


def current() -> Stack:
    """The stack that is described in the current folder or above it, else the one that was started last.

    Raises:
        NotConfigured: no folder has such a file; or the first one found is damaged, or lacks a field; or the
            current folder was deleted.
    """
    start, file = _nearest_or_last()
    if file is None:
        raise NotConfigured(
            f"there is no {FOLDER}/{FILE} in {start} or above, and no local stack is known that is up;"
            f" start it with `fanin local up`. If it is up elsewhere, run `unset {ENV_PROFILE}` and"
            ' `eval "$(fanin local env)"`'
        )
    return _described(file)


def nearest(start: Path) -> Stack:
    """The stack that the nearest file describes, in a folder or above it.

    Raises:
        NotConfigured: no folder has such a file; or the nearest one is damaged, or lacks a field.
    """
    file = _first((start, *start.parents))
    if file is None:
        raise NotConfigured(
            f"there is no {FOLDER}/{FILE} in {start} or above; start the local stack with `fanin local up`"
        )
    return _described(file)


def folder_elsewhere() -> Path | None:
    """The folder of the stack that ``current`` gives, if it is neither here nor above.

    Raises:
        NotConfigured: the current folder was deleted.
    """
    here, file = _nearest_or_last()
    root = file and file.parent.parent
    return None if root in {here, *here.parents} else root


def _nearest_or_last() -> tuple[Path, Path | None]:
    """The current folder; and the description in it or above, else that of the stack started last."""
    try:
        here = Path.cwd()
    except FileNotFoundError as error:
        raise NotConfigured("the current folder was deleted; go to another one") from error
    return here, _first((here, *here.parents, *remembered()))


def _first(roots: Iterable[Path]) -> Path | None:
    return next((path for path in map(_file, roots) if path.exists()), None)


def _described(file: Path) -> Stack:
    """Read a description.

    Fields that this version of fanin does not know are ignored, so that a client of another version can use
    the stack.
    """
    try:
        values = _load(file)
    except ValueError as error:
        raise NotConfigured(f"{file} is damaged: {error}; run `fanin local up` again") from error
    if absent := [name for name in _FIELDS if name not in values]:
        raise NotConfigured(
            f"{file} is damaged: the field {absent[0]} is missing; run `fanin local up` again"
        )
    return Stack(**{name: values[name] for name in _FIELDS})


def read(root: Path) -> Stack | None:
    """The stack described under a root, as this very version of fanin wrote it.

    Returns:
        None if there is no description, if it is damaged, or if another version wrote it: in each of these
        cases ``up`` has to deploy again.
    """
    try:
        values = _load(_file(root))
    except (FileNotFoundError, ValueError):
        return None
    return Stack(**values) if values.keys() == set(_FIELDS) else None


def write(root: Path, stack: Stack) -> None:
    """Save the description; a reader sees the old one or the new one, never half of it."""
    target = _file(root)
    draft = target.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(stack), indent=2) + "\n")
    draft.replace(target)


def remove(root: Path) -> None:
    """Delete the description, if there is one."""
    _file(root).unlink(missing_ok=True)


def _file(root: Path) -> Path:
    return root / FOLDER / FILE


def _load(file: Path) -> dict[str, Any]:
    """The file's JSON object.

    Raises:
        FileNotFoundError: there is no file.
        ValueError: the file does not hold a JSON object in UTF-8.
    """
    values = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise ValueError(f"it holds a JSON {type(values).__name__} instead of an object")  # noqa: TRY004 - damage
    return values


LOCAL: Final = "local"
"""The only profile."""
IGNORE_ENDPOINTS: Final = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
"""Whether boto3 ignores endpoints of the environment and of configuration files: ``true`` or ``false``."""
_OF_A_SERVICE: Final = "AWS_ENDPOINT_URL_"
"""What begins the variables that clients of one service prefer to ``AWS_ENDPOINT_URL``."""


def variables(stack: Stack, over: Iterable[str] = ()) -> dict[str, str]:
    """Environment variables that lead boto3, the AWS CLI, the library and the jobs to the local stack.

    Args:
        stack: the local stack.
        over: names of the variables that these come on top of. Those among them that would lead the clients
            of one service elsewhere become empty, which counts as not set: whoever takes these over may not
            delete any.
    """
    return {
        **{name: "" for name in over if name.startswith(_OF_A_SERVICE)},
        IGNORE_ENDPOINTS: "false",  # whatever a configuration file says
        "AWS_ENDPOINT_URL": stack.endpoint_url,
        "AWS_REGION": stack.region,
        "AWS_DEFAULT_REGION": stack.region,
        "AWS_ACCESS_KEY_ID": stack.access_key_id,
        "AWS_SECRET_ACCESS_KEY": stack.secret_access_key,
        "AWS_SESSION_TOKEN": "",  # the emulator would refuse one that is left over from a real account
        **stack.environment,
    }


def profiled(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment, in which the local stack takes the place of others if ``FANIN_PROFILE`` names it.

    Raises:
        NotConfigured: there is no local stack, or the profile is another one.
    """
    if wants_local(environment):
        return {**environment, **variables(current(), environment)}
    return dict(environment)


def wants_local(environment: Mapping[str, str]) -> bool:
    """Whether ``FANIN_PROFILE`` names the local stack.

    Raises:
        NotConfigured: it is another profile.
    """
    profile = environment.get(names.ENV_PROFILE)
    if profile and profile != LOCAL:
        raise NotConfigured(f"{names.ENV_PROFILE} is {profile!r}; the only profile is {LOCAL!r}")
    return profile == LOCAL
