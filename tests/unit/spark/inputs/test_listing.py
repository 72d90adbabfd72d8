"""What is asked of a file system to tell a folder from a table."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from fanin.spark.inputs import listing
from fanin.spark.inputs.listing import FoundFile, TableFolder, find_table, table_at

PLACE = "s3://lake/events"
INSIDE = ("/_delta_log", "/.hoodie", "/metadata")


class Denied(Py4JJavaError):
    """What Java raises where the role may not look."""

    def __init__(self) -> None:
        Exception.__init__(self)

    def __str__(self) -> str:
        return "java.nio.file.AccessDeniedException: s3://lake/_delta_log: getFileStatus"


class Store:
    """Objects of a bucket, and which folders were listed.

    Attributes:
        quick: the beginning of the folders that are listed at once, while others wait for ``go``.
    """

    def __init__(self, *paths: str) -> None:
        self.paths = paths
        self.denied: set[str] = set()
        self.listed: list[str] = []
        self.quick = ""
        self.go = Event()

    def session(self) -> Any:
        path = lambda text: SimpleNamespace(text=text, getFileSystem=lambda _conf: self)  # noqa: E731
        jvm = SimpleNamespace(
            org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace(Path=path))))
        )
        java = SimpleNamespace(hadoopConfiguration=lambda: None)
        return SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm, _jsc=java))

    def globStatus(self, path: Any) -> list[str]:  # noqa: N802
        folder, _, pattern = path.text.rpartition("/")
        self.listed.append(folder)
        assert folder.startswith(self.quick) or self.go.wait(60)
        if folder in self.denied:
            raise Denied
        below = [one.removeprefix(f"{folder}/") for one in self.paths if one.startswith(f"{folder}/")]
        names = {one.split("/")[0] for one in below}
        if pattern.startswith("{"):
            return sorted(names & set(pattern.strip("{}").split(",")))
        assert pattern.startswith("*")
        return sorted(name for name in names if name.endswith(pattern[1:]))


def files(*names: str) -> list[FoundFile]:
    return [FoundFile(f"{PLACE}/{name}", 1, 1) for name in names]


def test_a_folder_above_the_dataset_is_not_listed_however_much_it_holds():
    store = Store(f"{PLACE}/day=1/a.parquet", f"{PLACE}/day=2/b.parquet")

    assert find_table(store.session(), files("day=1/a.parquet", "day=2/b.parquet")) is None
    # Then only folders of the dataset, and those in which tables have their logs, are listed
    assert {folder for folder in store.listed if not folder.endswith(INSIDE)} == {
        f"{PLACE}/day=1",
        f"{PLACE}/day=2",
    }


def test_a_folder_of_many_files_is_not_listed_once_more():
    names = [f"day=1/{number}.parquet" for number in range(1_001)]
    store = Store(*(f"{PLACE}/{name}" for name in names), f"{PLACE}/day=1/_delta_log/0.json")

    assert find_table(store.session(), files(*names)) == TableFolder(f"{PLACE}/day=1", "Delta")

    assert all(folder.endswith(INSIDE) for folder in store.listed)


def test_each_folder_with_files_is_looked_at_by_one_call():
    store = Store(f"{PLACE}/day=1/a.parquet", f"{PLACE}/day=1/b.parquet")

    find_table(store.session(), files("day=1/a.parquet", "day=1/b.parquet"))

    assert [folder for folder in store.listed if folder.startswith(f"{PLACE}/day")] == [f"{PLACE}/day=1"]


def test_the_folder_of_a_dataset_is_not_listed_to_find_its_format():
    store = Store(f"{PLACE}/a.parquet")

    assert table_at(store.session(), PLACE) is None

    assert store.listed == [f"{PLACE}{inside}" for inside in INSIDE]


@pytest.mark.parametrize(
    ("log", "kind"),
    [("_delta_log/0.json", "Delta"), (".hoodie/x", "Hudi"), ("metadata/1.metadata.json", "Iceberg")],
)
@pytest.mark.parametrize("root", ["s3://lake", PLACE, f"{PLACE}/day=1"])
def test_a_table_is_found_above_the_files_and_beside_them(log, kind, root):
    store = Store(f"{root}/{log}", f"{PLACE}/day=1/a.parquet")

    assert find_table(store.session(), files("day=1/a.parquet")) == TableFolder(root, kind)
    assert table_at(store.session(), root) == TableFolder(root, kind)


def test_after_a_table_is_found_other_folders_are_not_looked_at(monkeypatch):
    # Given a table of many folders, the first of which has its log, and a store that answers to that first
    names = [f"day={number:03}/a.parquet" for number in range(300)]
    store = Store(f"{PLACE}/day=000/_delta_log/0.json", *(f"{PLACE}/{name}" for name in names))
    store.quick = f"{PLACE}/day=000"

    class Pool(ThreadPoolExecutor):
        """Lets the store answer once the search has ended."""

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            store.go.set()
            super().shutdown(wait)

    monkeypatch.setattr(listing, "ThreadPoolExecutor", Pool)

    assert find_table(store.session(), files(*names)) == TableFolder(f"{PLACE}/day=000", "Delta")

    assert len(store.listed) < len(names) / 2


def test_a_folder_above_that_the_job_may_not_look_into_is_no_table():
    store = Store(f"{PLACE}/a.parquet")
    store.denied = {"s3://lake/_delta_log", "s3://lake/.hoodie"}

    assert find_table(store.session(), files("a.parquet")) is None
