"""What a deployment takes from an assembly."""

import json
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

from fanin.local.deploy import _in_order, archive, fingerprint


def test_archive_has_the_same_bytes_for_the_same_content(tmp_path: Path) -> None:
    # Given two folders of the same files, written in another order at another time
    for folder, order in (("one", ("a.py", "b/c.py")), ("two", ("b/c.py", "a.py"))):
        for name in order:
            file = tmp_path / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)
    (tmp_path / "two" / "a.py").touch()

    # Then their archives are equal, and hold the files
    first, second = archive(tmp_path / "one"), archive(tmp_path / "two")
    assert first == second
    with ZipFile(BytesIO(first)) as zipped:
        assert {name: zipped.read(name) for name in zipped.namelist()} == {
            "a.py": b"a.py",
            "b/c.py": b"b/c.py",
        }


def test_archive_keeps_what_is_executable(tmp_path: Path) -> None:
    (tmp_path / "run").touch(mode=0o755)
    (tmp_path / "read").touch(mode=0o644)
    with ZipFile(BytesIO(archive(tmp_path))) as zipped:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in zipped.infolist()}
    assert modes == {"run": 0o755, "read": 0o644}


def test_stacks_come_after_those_they_depend_on() -> None:
    stack = "aws:cloudformation:stack"
    artifacts = {
        "top": {"type": stack, "dependencies": ["middle", "top.assets"]},
        "top.assets": {"type": "cdk:asset-manifest"},
        "middle": {"type": stack, "dependencies": ["bottom"]},
        "bottom": {"type": stack},
        "Tree": {"type": "cdk:tree"},
    }
    assert list(_in_order(artifacts)) == ["bottom", "middle", "top"]


def test_fingerprint_follows_templates_and_assets(tmp_path: Path) -> None:
    template = tmp_path / "fanin.template.json"
    template.write_text(json.dumps({"Resources": {}}))
    before = fingerprint(tmp_path)

    (tmp_path / "tree.json").write_text("{}")
    assert fingerprint(tmp_path) == before

    template.write_text(json.dumps({"Resources": {"One": {}}}))
    assert fingerprint(tmp_path) != before
