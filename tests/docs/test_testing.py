"""docs/how-to/testing.md: its tests pass, and its tables are those of the code."""

import re
import subprocess
import sys
from pathlib import Path

from fanin.testing import InMemoryService
from tests.docs import pages

PAGE = pages.text("how-to/testing.md")
EVERYWHERE = (
    "test_a_catalog_is_imported",
    "test_cars_that_do_not_answer_are_named",
    "test_an_order_reaches_a_desk",
)
CODE = "\n\n".join(pages.code("how-to/testing.md"))


def test_its_tests_pass(tmp_path: Path) -> None:
    # Given the page's blocks as one module of tests
    (tmp_path / "test_page.py").write_text(CODE)
    count = len(re.findall(r"^def test_", CODE, re.MULTILINE))
    assert count > 10
    # When pytest runs them, as a reader would, Then all pass
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
        "test_page.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert f"{count} passed" in done.stdout, done.stdout


def test_it_names_everything_that_a_service_has() -> None:
    service = InMemoryService()
    public = {name for name in dir(service) if not name.startswith("_")}
    table = PAGE.split("## Reference")[1].split("\n\nIt differs")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)", row.partition(" | ")[0])}
    assert named - {"InMemoryService"} == public


def test_it_names_what_is_accessed() -> None:
    # Given the places in the page's table
    told = set(re.findall(r"^\| `(\w+)\.", PAGE, re.MULTILINE))
    seen: set[str] = set()
    # When those that set no fault run
    scope: dict[str, object] = {}
    exec(compile(CODE, "docs/how-to/testing.md", "exec"), scope)  # noqa: S102
    for name in EVERYWHERE:
        service = InMemoryService(on_call=lambda access, _moment: seen.add(access.partition(".")[0]))
        scope[name](service)  # type: ignore[operator]
    # Then the page names each
    assert seen == told
