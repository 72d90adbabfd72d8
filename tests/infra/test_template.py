"""The plain template: it names its zip files by parameters, and brings exactly these files."""

import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import fanin
from fanin_cdk import BadSetting, template


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files for a stack with a setting of its own, and the layers of this machine."""
    folder = tmp_path_factory.mktemp("written") / "template"
    template.write(folder, {"local": "true", "prefix": "shop"})
    return folder


@pytest.fixture(scope="module")
def content(written: Path) -> Any:
    return json.loads((written / template.TEMPLATE).read_text())


def code(content: Any) -> list[dict[str, Any]]:
    """Where functions and layers have their code."""
    keys = {"AWS::Lambda::Function": "Code", "AWS::Lambda::LayerVersion": "Content"}
    return [
        resource["Properties"][keys[resource["Type"]]]
        for resource in content["Resources"].values()
        if resource["Type"] in keys
    ]


def test_all_code_is_in_the_bucket_and_below_the_prefix(written, content):
    # Given where the functions and layers of the template take their code
    places = code(content)
    assert len(places) > 14
    # Then all of it is where the parameters say
    assert {place["S3Bucket"]["Fn::Sub"] for place in places} == {"${AssetsBucket}"}
    keys = {place["S3Key"]["Fn::Sub"] for place in places}
    assert all(key.startswith("${AssetsPrefix}") for key in keys)
    # And these files are there, and no others
    files = {path.name for path in (written / template.ASSETS).iterdir()}
    assert {key.removeprefix("${AssetsPrefix}") for key in keys} == files


def test_the_zip_files_have_handlers_and_layers(written):
    names = [
        set(zipfile.ZipFile(io.BytesIO(path.read_bytes())).namelist())
        for path in (written / template.ASSETS).iterdir()
    ]
    assert sum(entries == {"handler.py"} for entries in names) >= 14
    assert sum("python/fanin/errors.py" in entries for entries in names) == 1
    assert sum("python/boto3/__init__.py" in entries for entries in names) == 1


def test_nothing_asks_for_the_cdk(content):
    # Then there is no bootstrapping, no custom resource of the CDK, and the parameters are ours
    assert set(content) == {"Description", "Outputs", "Parameters", "Resources"}
    assert set(content["Parameters"]) == {"AssetsBucket", "AssetsPrefix"}
    assert content["Parameters"]["AssetsPrefix"]["Default"] == f"fanin/{fanin.__version__}/"
    text = json.dumps(content)
    assert not re.search(r"cdk-|CDKMetadata|Custom::", text)


@pytest.mark.parametrize(
    ("prefix", "allowed"),
    [("", True), ("a/", True), ("a/b/", True), ("a", False), ("/", False), ("/a/", False)],
)
def test_a_prefix_ends_with_a_slash(content, prefix, *, allowed):
    pattern = content["Parameters"]["AssetsPrefix"]["AllowedPattern"]
    assert bool(re.fullmatch(pattern, prefix)) == allowed


def test_the_settings_and_the_note_say_which_stack_it_is(written, content):
    buses = [one for one in content["Resources"].values() if one["Type"] == "AWS::Events::EventBus"]
    assert [bus["Properties"]["Name"] for bus in buses] == ["shop"]
    note = (written / "README.md").read_text()
    assert "local=true, prefix=shop" in note
    assert f"AssetsPrefix=fanin/{fanin.__version__}/" in note


@pytest.mark.soak
def test_cfn_lint_finds_nothing(written):
    # Given a template for an emulator, whose action for batches of messages does not exist on AWS (W3037)
    ignored = ("--ignore-checks", "W3005", "W3037", "--")
    lint = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), *ignored, str(written / template.TEMPLATE)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (lint.returncode, lint.stdout) == (0, "")


def test_a_setting_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(BadSetting, match=r"there is no setting lifetimes; the settings are .*lifetime"):
        template.write(tmp_path / "new", {"lifetimes": "60"})
    assert not (tmp_path / "new").exists()


def test_a_bad_value_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(BadSetting, match="setting lifetime is 1; it must be from 60"):
        template.write(tmp_path / "new", {"lifetime": "1"})
    assert not (tmp_path / "new").exists()


def test_files_that_are_there_are_left_alone(tmp_path, capsys):
    # Given a folder with something in it
    (tmp_path / "mine").write_text("mine")
    code = template.main([str(tmp_path)])
    # Then it says why it does not
    assert code == 2
    assert "is not empty; name a folder that does not exist yet" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_setting_needs_a_value(tmp_path, capsys):
    with pytest.raises(SystemExit):
        template.main([str(tmp_path / "new"), "--context", "prefix"])
    assert "--context takes NAME=VALUE, and got 'prefix'" in capsys.readouterr().err
