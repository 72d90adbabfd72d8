"""The file that says where the local stack is: written whole, read by any client, checked by its fields."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import boto3
import pytest

from fanin.client import local_stack
from fanin.client.local_stack import FILE, FOLDER, profiled, variables
from fanin.errors import NotConfigured
from tests.unit.local_stacks import STACK


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / FOLDER).mkdir()
    return tmp_path


@pytest.fixture
def file(root: Path) -> Path:
    local_stack.write(root, STACK)
    return root / FOLDER / FILE


class TestOwn:
    def test_what_is_written_is_read(self, root):
        local_stack.write(root, STACK)
        assert local_stack.read(root) == STACK
        assert [file.name for file in (root / FOLDER).iterdir()] == [FILE]

        local_stack.remove(root)
        local_stack.remove(root)
        assert local_stack.read(root) is None

    def test_what_another_version_wrote_is_not_read(self, root, file):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"new_in_this_version": 1}))
        assert local_stack.read(root) is None
        file.write_text(json.dumps({"api_url": "http://127.0.0.1"}))
        assert local_stack.read(root) is None

    @pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"null", b"\xff"])
    def test_a_damaged_description_counts_as_none(self, root, file, damage):
        file.write_bytes(damage)
        assert local_stack.read(root) is None


class TestNearest:
    def test_of_two_the_nearer_one_counts(self, root, file):
        inner = root / "inner"
        (inner / FOLDER).mkdir(parents=True)
        local_stack.write(inner, replace(STACK, region="inner"))
        assert local_stack.nearest(inner).region == "inner"

    def test_without_one_the_error_names_the_folder_and_the_command(self, tmp_path):
        with pytest.raises(NotConfigured, match=r"fanin local up") as refused:
            local_stack.nearest(tmp_path)
        assert str(tmp_path) in str(refused.value)

    def test_fields_of_a_later_version_are_ignored(self, root, file):
        file.write_text(json.dumps(asdict(STACK) | {"new": 1}))
        assert local_stack.nearest(root) == STACK

    def test_a_field_that_is_missing_is_named(self, root, file):
        without = {name: value for name, value in asdict(STACK).items() if name != "environment"}
        file.write_text(json.dumps(without))
        with pytest.raises(NotConfigured, match=r"damaged: .* environment .* run `fanin local up` again"):
            local_stack.nearest(root)

    @pytest.mark.parametrize(
        ("damage", "said"), [(b"{", "Expecting property name"), (b"[]", "JSON list"), (b"\xff", "utf-8")]
    )
    def test_damage_is_told_with_what_to_do(self, root, file, damage, said):
        file.write_bytes(damage)
        with pytest.raises(NotConfigured, match=f"is damaged: .*{said}.* again") as refused:
            local_stack.nearest(root)
        assert str(file) in str(refused.value)


class TestCurrent:
    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The current folder, which has no stack in it or above."""
        folder = tmp_path_factory.mktemp("elsewhere")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        monkeypatch.chdir(folder)
        return folder

    def test_one_in_the_folder_itself_goes_before_it(self, root, file, elsewhere):
        local_stack.remember(root)
        (elsewhere / FOLDER).mkdir()
        local_stack.write(elsewhere, replace(STACK, region="near"))
        assert local_stack.current().region == "near"

    def test_a_folder_that_was_deleted_is_an_error_of_one_line(self, elsewhere):
        elsewhere.rmdir()
        with pytest.raises(NotConfigured, match="the current folder was deleted"):
            local_stack.current()

    def test_those_that_are_down_are_passed_over(self, root, file, tmp_path):
        local_stack.remember(root)
        local_stack.remember(tmp_path / "removed")
        assert local_stack.current() == STACK

    def test_when_all_are_down_the_error_says_what_to_do(self, root, elsewhere):
        local_stack.remember(root)
        with pytest.raises(NotConfigured, match=r"fanin local up.*fanin local env") as refused:
            local_stack.current()
        assert str(elsewhere) in str(refused.value)

    def test_damage_is_told(self, root, file):
        local_stack.remember(root)
        file.write_text("{")
        with pytest.raises(NotConfigured, match="is damaged"):
            local_stack.current()


def test_a_client_talks_to_the_emulator_with_its_keys():
    stack = replace(STACK, endpoint_url="http://127.0.0.1:4599", region="us-east-1", access_key_id="key")
    client = stack.client("sqs")
    assert client.meta.endpoint_url == "http://127.0.0.1:4599"
    assert client.meta.region_name == "us-east-1"
    assert stack.session().get_credentials().access_key == "key"


# ``FANIN_PROFILE=local`` as the variables of the local stack.


def test_the_variables_lead_aws_there():
    told = variables(STACK)
    assert (told["AWS_ENDPOINT_URL"], told["FANIN_API_URL"]) == (STACK.endpoint_url, STACK.api_url)
    assert told["AWS_SESSION_TOKEN"] == ""


def test_the_profile_comes_before_the_names_of_another_stack(monkeypatch, tmp_path):
    # Given a local stack, and an environment that names another one
    (tmp_path / FOLDER).mkdir()
    local_stack.write(tmp_path, STACK)
    monkeypatch.chdir(tmp_path)
    other = {"FANIN_API_URL": "https://api.test", "HOME": "/home/me"}
    # When the profile names the local stack, then it counts; without the profile the other one does
    assert profiled({**other, "FANIN_PROFILE": "local"}) == {
        **other,
        "FANIN_PROFILE": "local",
        **variables(STACK),
    }
    assert profiled(other) == other


@pytest.mark.parametrize(
    ("config", "ignored"), [("", "true"), ("[default]\nignore_configured_endpoint_urls = true\n", None)]
)
def test_no_service_of_the_profile_is_where_the_environment_has_it(monkeypatch, tmp_path, config, ignored):
    # Given an environment or a file that leads boto3 elsewhere, service by service, or always to AWS
    (tmp_path / "config").write_text(config)
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{tmp_path}/config")
    monkeypatch.delenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", raising=False)
    stack = replace(STACK, endpoint_url="http://127.0.0.1:4566", region="eu-west-1")
    (tmp_path / FOLDER).mkdir()
    local_stack.write(tmp_path, stack)
    monkeypatch.chdir(tmp_path)
    elsewhere = {
        "AWS_ENDPOINT_URL_SQS": "https://sqs.test",
        "AWS_ENDPOINT_URL_DYNAMODB": "https://dynamodb.test",
        **({} if ignored is None else {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": ignored}),
    }
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name, value in elsewhere.items():
        monkeypatch.setenv(name, value)
    # When a process takes over the variables of the profile, as the tasks of a job do
    for name, value in profiled({**elsewhere, "FANIN_PROFILE": "local"}).items():
        monkeypatch.setenv(name, value)

    session = boto3.Session()
    for service in ("sqs", "dynamodb", "s3"):
        assert session.client(service).meta.endpoint_url == "http://127.0.0.1:4566"


def test_another_profile_is_refused():
    with pytest.raises(NotConfigured, match="FANIN_PROFILE is 'prod'; the only profile is 'local'"):
        profiled({"FANIN_PROFILE": "prod"})


# The folders of local stacks that a user's state folder remembers.


@pytest.fixture
def file_local_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "fanin" / "local.json"


def test_the_last_one_is_first_and_none_is_there_twice(file_local_roots):
    assert local_stack.remembered() == []
    for root in ("/a", "/b", "/a"):
        local_stack.remember(Path(root))
    assert local_stack.remembered() == [Path("/a"), Path("/b")]
    assert [one.name for one in file_local_roots.parent.iterdir()] == ["local.json"]


def test_those_of_long_ago_are_forgotten(file_local_roots):
    for number in range(local_stack.MOST_ROOTS + 5):
        local_stack.remember(Path(f"/{number}"))
    assert len(local_stack.remembered()) == local_stack.MOST_ROOTS
    assert local_stack.remembered()[0] == Path(f"/{local_stack.MOST_ROOTS + 4}")


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"null", b"\xff", b"{}", b'{"roots": [1]}', b'{"roots": 1}']
)
def test_a_damaged_file_counts_as_none_and_is_replaced(file_local_roots, damage):
    file_local_roots.parent.mkdir(parents=True)
    file_local_roots.write_bytes(damage)
    assert local_stack.remembered() == []
    local_stack.remember(Path("/a"))
    assert local_stack.remembered() == [Path("/a")]


@pytest.mark.parametrize("state", ["", "relative/folder"])
def test_without_an_absolute_state_folder_it_is_in_the_home(tmp_path, monkeypatch, state):
    monkeypatch.setenv("XDG_STATE_HOME", state)
    monkeypatch.setenv("HOME", str(tmp_path))
    local_stack.remember(Path("/a"))
    assert (tmp_path / ".local/state/fanin/local.json").exists()


def test_a_user_without_a_home_has_none(monkeypatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert local_stack.remembered() == []
    with pytest.raises(OSError, match="no home"):
        local_stack.remember(Path("/a"))
