"""The file that says where the local stack is: written whole, read by any client, checked by its fields."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fanin.client import local_stack
from fanin.client.local_stack import FILE, FOLDER
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
    def test_what_is_written_is_read(self, root: Path) -> None:
        local_stack.write(root, STACK)
        assert local_stack.read(root) == STACK
        assert [file.name for file in (root / FOLDER).iterdir()] == [FILE]

        local_stack.remove(root)
        local_stack.remove(root)
        assert local_stack.read(root) is None

    def test_what_another_version_wrote_is_not_read(self, root: Path, file: Path) -> None:
        file.write_text(json.dumps(json.loads(file.read_text()) | {"new_in_this_version": 1}))
        assert local_stack.read(root) is None
        file.write_text(json.dumps({"api_url": "http://127.0.0.1"}))
        assert local_stack.read(root) is None

    @pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"null", b"\xff"])
    def test_a_damaged_description_counts_as_none(self, root: Path, file: Path, damage: bytes) -> None:
        file.write_bytes(damage)
        assert local_stack.read(root) is None


class TestNearest:
    def test_of_two_the_nearer_one_counts(self, root: Path, file: Path) -> None:
        inner = root / "inner"
        (inner / FOLDER).mkdir(parents=True)
        local_stack.write(inner, replace(STACK, region="inner"))
        assert local_stack.nearest(inner).region == "inner"

    def test_without_one_the_error_names_the_folder_and_the_command(self, tmp_path: Path) -> None:
        with pytest.raises(NotConfigured, match=r"fanin local up") as refused:
            local_stack.nearest(tmp_path)
        assert str(tmp_path) in str(refused.value)

    def test_fields_of_a_later_version_are_ignored(self, root: Path, file: Path) -> None:
        file.write_text(json.dumps(asdict(STACK) | {"new": 1}))
        assert local_stack.nearest(root) == STACK

    def test_a_field_that_is_missing_is_named(self, root: Path, file: Path) -> None:
        without = {name: value for name, value in asdict(STACK).items() if name != "environment"}
        file.write_text(json.dumps(without))
        with pytest.raises(NotConfigured, match=r"damaged: .* environment .* run `fanin local up` again"):
            local_stack.nearest(root)

    @pytest.mark.parametrize(
        ("damage", "said"), [(b"{", "Expecting property name"), (b"[]", "JSON list"), (b"\xff", "utf-8")]
    )
    def test_damage_is_told_with_what_to_do(self, root: Path, file: Path, damage: bytes, said: str) -> None:
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

    def test_one_in_the_folder_itself_goes_before_it(self, root: Path, file: Path, elsewhere: Path) -> None:
        local_stack.remember(root)
        (elsewhere / FOLDER).mkdir()
        local_stack.write(elsewhere, replace(STACK, region="near"))
        assert local_stack.current().region == "near"

    def test_a_folder_that_was_deleted_is_an_error_of_one_line(self, elsewhere: Path) -> None:
        elsewhere.rmdir()
        with pytest.raises(NotConfigured, match="the current folder was deleted"):
            local_stack.current()

    def test_those_that_are_down_are_passed_over(self, root: Path, file: Path, tmp_path: Path) -> None:
        local_stack.remember(root)
        local_stack.remember(tmp_path / "removed")
        assert local_stack.current() == STACK

    def test_when_all_are_down_the_error_says_what_to_do(self, root: Path, elsewhere: Path) -> None:
        local_stack.remember(root)
        with pytest.raises(NotConfigured, match=r"fanin local up.*fanin local env") as refused:
            local_stack.current()
        assert str(elsewhere) in str(refused.value)

    def test_damage_is_told(self, root: Path, file: Path) -> None:
        local_stack.remember(root)
        file.write_text("{")
        with pytest.raises(NotConfigured, match="is damaged"):
            local_stack.current()


def test_a_client_talks_to_the_emulator_with_its_keys() -> None:
    stack = replace(STACK, endpoint_url="http://127.0.0.1:4599", region="us-east-1", access_key_id="key")
    client = stack.client("sqs")
    assert client.meta.endpoint_url == "http://127.0.0.1:4599"
    assert client.meta.region_name == "us-east-1"
    assert stack.session().get_credentials().access_key == "key"
