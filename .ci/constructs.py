"""Tries the wheel of fanin-cdk: the app of the documentation, in an empty environment, on an emulator."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from away import ROOT, check, environment, run

CONTEXT = {"local": True, "removal": "destroy", "ack_batching_window_seconds": 1}


def bundled() -> dict[str, bytes]:
    """What the wheel has besides its package, by path: handlers, and requirements of layers."""
    carried = [*ROOT.glob("functions/*/*.py"), *ROOT.glob("layers/*/*.txt")]
    return {f"fanin_cdk/bundled/{path.relative_to(ROOT).as_posix()}": path.read_bytes() for path in carried}


def try_out(folder: Path, library: Path, wheel: Path) -> None:
    """Synthesize an app with the oldest and the newest CDK that the wheel allows, and use what it deploys.

    Args:
        folder: for environments and files.
        library: wheel of fanin.
        wheel: wheel of fanin-cdk.
    """
    app = folder / "shop"
    _write(app)
    for name, more in (("oldest", (f"aws-cdk-lib=={_oldest(wheel)}",)), ("newest", ())):
        programs = environment(folder / name, library, wheel, *more)
        installed = run(programs / "python", "-m", "pip", "freeze")
        check("cdk-nag" not in installed, "the constructs bring cdk-nag with them")
        out = app / name
        given = {"CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps(CONTEXT)}
        run(programs / "python", "app.py", folder=app, **given)
        _check_assets(out, library)
        (cdk,) = re.findall(r"^aws-cdk-lib==(.+)$", installed, re.MULTILINE)
        print(f"the app of the documentation synthesizes with aws-cdk-lib {cdk}, with handlers and layers")
    print(run(programs / "python", ROOT / ".ci" / "track.py", out, folder=app))


def _oldest(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as packed:
        (metadata,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        (oldest,) = re.findall(
            r"^Requires-Dist: aws-cdk-lib.*>=([0-9.]+)", packed.read(metadata).decode(), re.MULTILINE
        )
    return f"{oldest}.0" if oldest.count(".") == 1 else str(oldest)


def _write(app: Path) -> None:
    (app / "consumer").mkdir(parents=True)
    source, handler, _ = _python("docs/how-to/deployment.md")
    (app / "app.py").write_text(source)
    (app / "consumer" / "handler.py").write_text(handler)


def _python(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def _check_assets(out: Path, library: Path) -> None:
    """The assets have all handlers of the stack, the fanin that is installed, and third-party packages."""
    handlers = {path.read_bytes() for path in out.glob("asset.*/handler.py")}
    wanted = {
        path.read_bytes()
        for path in ROOT.glob("functions/*/handler.py")
        if path.parent.name not in ("console", "fan_out", "removal")  # of settings, and of a construct
    }
    check(handlers >= wanted, "an asset with a handler is missing")
    (layer,) = out.glob("asset.*/python/fanin")
    with zipfile.ZipFile(library) as packed:
        for file in layer.rglob("*.py"):
            name = f"fanin/{file.relative_to(layer).as_posix()}"
            check(file.read_bytes() == packed.read(name), f"the layer has another {name} than the wheel")
    check((layer / "errors.py").exists(), "the layer lacks fanin")
    check(list(out.glob("asset.*/python/boto3")), "no layer has boto3")
