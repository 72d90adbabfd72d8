"""The same place by all its names, and where a path leads."""

from typing import Any
from unittest.mock import Mock

import pytest

from fanin.spark.runtime import places
from fanin.spark.runtime.places import canonical, escaped, file_system, is_pattern, place_of, s3_options


@pytest.mark.parametrize("uri", ["s3://lake/a", "s3a://lake/a/", "s3n://lake/a"])
def test_a_place_on_s3_is_the_same_by_any_scheme(uri):
    assert canonical(uri) == "s3://lake/a/"


@pytest.mark.parametrize("uri", ["s3://lake", "s3a://lake/"])
def test_a_bucket_is_the_place_of_all_that_is_in_it(uri):
    assert canonical("s3://lake/a").startswith(canonical(uri))


def test_a_link_is_the_place_that_it_points_to(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert canonical(f"file:{tmp_path}/link/x") == f"file:{tmp_path.resolve()}/there/x/"
    assert canonical("file:/") == "file:/"


def test_other_file_systems_are_other_places():
    assert canonical("hdfs://n/a") == "hdfs://n/a/"


@pytest.mark.parametrize("path", ["a*", "a?", "[1]", "{a,b}", "a\\b"])
def test_a_path_with_signs_of_a_pattern_is_one_unless_they_are_escaped(path):
    assert is_pattern(path)
    signs = [letter for letter in escaped(path) if letter == "\\"]
    assert len(signs) == sum(letter in "*?[]{}" or 2 * (letter == "\\") for letter in path)


def test_any_other_path_is_taken_as_it_is():
    path = "s3://lake/a b/ü=1/x,y (2).csv"
    assert not is_pattern(path)
    assert escaped(path) == path


KEYS = {"fs.s3a.access.key": "AK", "fs.s3a.secret.key": "SK"}
ENDPOINT = {"scheme": "http", "endpoint_override": "minio:9000"}


@pytest.mark.parametrize(
    ("conf", "environment", "options"),
    [
        ({}, {"AWS_REGION": "eu-west-1"}, {}),
        (
            {**KEYS, "fs.s3a.session.token": "ST"},
            {},
            {"access_key": "AK", "secret_key": "SK", "session_token": "ST"},
        ),
        (
            {**KEYS, "fs.s3a.bucket.lake.access.key": "BK", "fs.s3a.bucket.lake.secret.key": "BS"},
            {},
            {"access_key": "BK", "secret_key": "BS"},
        ),
        ({"fs.s3a.endpoint.region": "eu-west-1"}, {"AWS_REGION": "us-east-1"}, {"region": "eu-west-1"}),
        ({"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"}, {}, ENDPOINT),
        ({"fs.s3a.endpoint": "minio:9000"}, {}, {**ENDPOINT, "scheme": "https"}),
        (
            {"fs.s3a.endpoint": "http://minio:9000", "fs.s3a.path.style.access": "false"},
            {},
            {**ENDPOINT, "force_virtual_addressing": True},
        ),
        ({}, {"AWS_ENDPOINT_URL": "http://other", "AWS_ENDPOINT_URL_S3": "http://minio:9000"}, ENDPOINT),
        (
            {"fs.s3a.endpoint": "s3.amazonaws.com"},
            {"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_DEFAULT_REGION": "eu-west-1"},
            {**ENDPOINT, "region": "eu-west-1"},
        ),
        (
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {},
            {"anonymous": True},
        ),
        ({}, {"AWS_ENDPOINT_URL": "http://x:1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, {}),
        (
            {},
            {"AWS_ENDPOINT_URL": "http://x:1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false"},
            {"scheme": "http", "endpoint_override": "x:1"},
        ),
    ],
)
def test_settings_of_s3a_come_before_the_environment(conf, environment, options):
    assert s3_options("lake", conf.get, environment) == options


SPARK: Any = Mock(**{"sparkContext._jsc.hadoopConfiguration.return_value.get.return_value": None})
"""A session without settings of S3A."""


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_paths_of_this_machine(tmp_path, form):
    path = form.format(tmp_path)
    assert (file_system(path, SPARK).type_name, place_of(path)) == ("local", str(tmp_path))


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_a_bucket_without_an_endpoint_is_looked_for(scheme, monkeypatch):
    # Given an environment that names a region, as on EMR, and a bucket in another one
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(places.pafs, "resolve_s3_region", {"lake": "eu-west-1"}.__getitem__)
    monkeypatch.setattr(places.pafs, "S3FileSystem", Regional)

    assert file_system(f"{scheme}://lake/acks/day=1/", SPARK).region == "eu-west-1"


class Regional:
    """S3 in one region, with a bucket that is in eu-west-1."""

    def __init__(self, region: str) -> None:
        self.region = region

    def get_file_info(self, path: str) -> None:
        if self.region != "eu-west-1":
            raise OSError(f"{path}: the configured region is {self.region} while the bucket is in eu-west-1")


def out_of_reach(bucket: str) -> str:
    raise OSError(f"When resolving region for bucket '{bucket}': could not connect")


@pytest.fixture
def only_own_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 for a job that reaches it in its own region only, as in a VPC without NAT."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(places.pafs, "resolve_s3_region", out_of_reach)
    monkeypatch.setattr(places.pafs, "S3FileSystem", Regional)


@pytest.mark.usefixtures("only_own_region")
def test_a_bucket_in_the_region_of_the_job_is_looked_for_nowhere_else(monkeypatch):
    # Given a job in the region of the bucket
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert file_system("s3://lake/acks", SPARK).region == "eu-west-1"
    # When it is in another one, and us-east-1 is out of reach, then the error says where the bucket is
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    with pytest.raises(OSError, match=r"lake/acks: the configured region is us-west-2"):
        file_system("s3://lake/acks", SPARK)


@pytest.mark.usefixtures("only_own_region")
def test_a_bucket_of_which_nothing_says_where_it_is_is_an_error_that_names_it():
    with pytest.raises(OSError, match="bucket 'lake'"):
        file_system("s3://lake/acks", SPARK)
