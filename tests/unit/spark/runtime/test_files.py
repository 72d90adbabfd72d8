"""A file is there whole or not at all, wherever a driver dies; this machine's files are tested on Spark."""

from collections.abc import Callable
from typing import Any

import pytest

from fanin.errors import ServiceUnavailable
from fanin.spark.runtime.files import Folder
from tests.unit.spark.runtime.file_systems import Died, FileSystem, Raised

KINDS: dict[str, Callable[[], FileSystem]] = {
    "HDFS": FileSystem,
    "S3": lambda: FileSystem("s3", objects=True),
    "S3 with conditional writes": lambda: FileSystem("s3a", objects=True, conditional=True),
}


@pytest.fixture(params=list(KINDS))
def system(request: pytest.FixtureRequest) -> FileSystem:
    return KINDS[request.param]()


def whole(system: FileSystem, name: str = "note") -> bytes | None:
    return system.files.get(f"/folder/{name}")


def requests(system: FileSystem, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the requests that are made from now on."""
    made: list[str] = []

    def noted(name: str, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def ask(path: Any) -> Any:
            made.append(name)
            return answer(path)

        return ask

    for name in ("exists", "isDirectory", "open"):
        monkeypatch.setattr(system, name, noted(name, getattr(system, name)))
    return made


@pytest.mark.parametrize("replace", [True, False])
def test_a_driver_that_dies_at_any_step_leaves_a_whole_file_or_none(system, replace):
    folder, old = Folder(system.session(), "/folder"), b"the old text"
    died = 0
    while True:
        # Given a driver that dies one step later than the one before
        system.files = {"/folder/note": old} if replace else {}
        system.steps = died
        try:
            folder.write("note", "the new text", replace=replace)
        except Died:
            died += 1
        else:
            assert system.files == {"/folder/note": b"the new text"}
            break
        # Then the file is old, or new, or missing
        assert whole(system) in {b"the new text", old if replace else None, None}
        # And the next driver writes it, unless it is there
        system.steps = None
        written = folder.write("note", "the next text", replace=replace)
        assert whole(system) == (b"the next text" if written else b"the new text")
        assert written or not replace
    assert died >= 4


def test_of_two_drivers_one_writes_a_file_that_should_stay(system):
    folder = Folder(system.session(), "/folder")
    assert folder.write("note", "the first", replace=False)
    assert not folder.write("note", "the second", replace=False)
    assert whole(system) == b"the first"
    assert list(system.files) == ["/folder/note"]  # and nothing is left beside it


@pytest.mark.parametrize("kind", ["HDFS", "S3 with conditional writes"])
def test_a_driver_that_is_overtaken_while_it_writes_does_not_replace_the_file(kind):
    # Given a file that another driver writes while this one closes its own
    system = KINDS[kind]()
    folder = Folder(system.session(), "/folder")
    step, calls = system.step, []

    def overtake() -> None:
        calls.append(1)
        if len(calls) == 4:  # created, written in two halves, and about to be closed
            system.files["/folder/note"] = b"the other's"
        step()

    system.step = overtake

    assert not folder.write("note", "mine", replace=False)
    assert whole(system) == b"the other's"


def test_a_file_is_read_by_one_request(system, monkeypatch):
    system.files = {"/folder/note": b"text"}
    folder = Folder(system.session(), "/folder")
    asked = requests(system, monkeypatch)
    assert folder.read("note") == "text"
    assert asked == ["open"]


def test_a_file_that_is_replaced_while_it_is_opened_has_the_new_text(monkeypatch):
    # Given a driver that deletes a file before a reader opens it, and puts another there before it looks
    system = FileSystem()
    system.files = {"/folder/note": b"the old text"}
    folder = Folder(system.session(), "/folder")

    def replace(path: Any) -> Any:
        monkeypatch.undo()
        del system.files["/folder/note"]
        try:
            return system.open(path)
        finally:
            system.files["/folder/note"] = b"the new text"

    monkeypatch.setattr(system, "open", replace)
    assert folder.read("note") == "the new text"


def test_a_file_that_cannot_be_read_is_tried_twice(system, monkeypatch):
    def refuse(_path: object) -> None:
        raise Raised("AccessControlException: read")

    system.files = {"/folder/note": b"text"}
    folder = Folder(system.session(), "/folder")
    monkeypatch.setattr(system, "open", refuse)
    asked = requests(system, monkeypatch)
    with pytest.raises(Raised, match="AccessControlException"):
        folder.read("note")
    assert asked == ["open", "exists", "open"]


def test_what_cannot_be_deleted_is_not_taken_for_gone(monkeypatch):
    # Given a file system that says no, and does not raise
    system = FileSystem()
    system.files = {"/folder/rows/part-0": b"x"}
    monkeypatch.setattr(system, "delete", lambda _path, _recursive: False)
    folder = Folder(system.session(), "/folder")
    # When what is there should be deleted, then that is an error; what is not there is no matter
    with pytest.raises(ServiceUnavailable, match="/folder/rows cannot be deleted"):
        folder.delete("rows")
    folder.delete("none")


def test_a_driver_that_is_interrupted_while_it_writes_leaves_no_half_object():
    # Given Ctrl-C in the middle of a file; what is left of the driver goes on
    system = FileSystem("s3", objects=True)
    system.steps = 2
    step = system.step

    def interrupt() -> None:
        try:
            step()
        except Died:
            system.steps = None
            raise

    system.step = interrupt
    with pytest.raises(Died):
        Folder(system.session(), "/folder").write("note", "text")
    assert not system.files


def test_what_is_written_beside_is_hidden_from_spark():
    # Given a driver that dies before it renames; its folder is a dataset
    system = FileSystem()
    system.steps = 4
    with pytest.raises(Died):
        Folder(system.session(), "/folder").write("part-0.parquet", "text")
    (left,) = system.files
    assert left.startswith("/folder/.part-0.parquet-")


def test_a_file_whose_folder_was_taken_over_does_not_delete_what_is_there_now(monkeypatch):
    # Given a driver whose folder another one replaces between its draft and the rename
    system = FileSystem()
    folder, rename = Folder(system.session(), "hdfs://n/out"), system.rename

    def overtaken(source: Any, target: Any) -> bool:
        system.files.clear()
        system.files["hdfs://n/out/part"] = b"of the other"
        return rename(source, target)

    monkeypatch.setattr(system, "rename", overtaken)
    # When it writes, then it says that it could not, and the other's file stays
    with pytest.raises(ServiceUnavailable, match="cannot be replaced"):
        folder.write("part", "mine")
    assert system.files == {"hdfs://n/out/part": b"of the other"}
