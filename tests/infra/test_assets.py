"""Handlers, requirements and fanin itself are found in a checkout and in a wheel, and only together."""

import importlib.util
import shutil
from pathlib import Path

import pytest

import fanin
from fanin_cdk import VersionMismatch, assets

ROOT = Path(__file__).resolve().parents[2]


def test_a_checkout_has_its_own_folders():
    assert (assets.FUNCTIONS, assets.REQUIREMENTS) == (ROOT / "functions", ROOT / "layers")
    assert assets.PACKAGE == ROOT / "layers" / "fanin" / "python" / "fanin"


def test_a_wheel_has_them_in_the_package(tmp_path):
    # Given the module as a wheel has it, with the folder that the build adds
    package = tmp_path / "fanin_cdk"
    (package / "bundled" / "functions").mkdir(parents=True)
    shutil.copyfile(assets.__file__, package / "assets.py")
    spec = importlib.util.spec_from_file_location("wheel_assets", package / "assets.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert package / "bundled" / "functions" == module.FUNCTIONS
    assert package / "bundled" / "layers" == module.REQUIREMENTS


def test_the_two_packages_are_of_one_release():
    assets.check_versions(fanin.__version__)
    assets.check_versions()  # a checkout is of one commit, whatever was installed from it
    with pytest.raises(VersionMismatch, match=r"fanin-cdk is 9\.9\.9 .* pip install 'fanin-cdk==9\.9\.9'"):
        assets.check_versions("9.9.9")


def test_the_package_is_copied_without_caches_and_rooms_that_stay_behind(tmp_path):
    # Given rooms that functions do not need; a room of the same name further down is another one
    bundling = assets.CopyPackage("python", ["cli", "errors.py", "pages"])
    assert bundling.try_bundle(str(tmp_path)) is True
    # Then they are left out, and nothing else
    copied = {path.relative_to(tmp_path / "python" / "fanin") for path in (tmp_path / "python").rglob("*.py")}
    package = {path.relative_to(assets.PACKAGE) for path in assets.PACKAGE.rglob("*.py")}
    assert package - copied == {path for path in package if path.parts[0] in ("cli", "errors.py")}
    assert Path("console/pages/heading.py") in copied
    assert not list(tmp_path.rglob("__pycache__"))
    # And the hash of the asset leaves out the same
    assert {"/cli/", "/pages/", "__pycache__"} <= set(bundling.excluded)
