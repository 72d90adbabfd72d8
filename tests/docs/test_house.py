"""The house: each module's tests lie where the module does, under its name."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "fanin" / "python" / "fanin"


def test_tests_mirror_a_module_or_say_what_they_are_about():
    """A folder of tests is a room of the package."""
    unit = ROOT / "tests" / "unit"
    others = {"bench", "examples", "functions"}
    rooms = {
        folder.relative_to(unit)
        for folder in unit.rglob("*")
        if folder.is_dir()
        and folder.name != "__pycache__"
        and folder.relative_to(unit).parts[0] not in others
    }
    assert {room for room in rooms if not (PACKAGE / room).is_dir()} == set()
