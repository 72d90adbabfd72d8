"""Writes the stack as a plain CloudFormation template and zip files, for those who do not use the CDK.

    python -m fanin_cdk.template fanin-template
    python -m fanin_cdk.template fanin-template --context prefix=shop --context lifetime=86400

The template takes the bucket and the prefix of the zip files as parameters, so SAM, Terraform and StackSets
can deploy it. docs/how-to/deployment.md says how.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import aws_cdk as cdk

import fanin
from fanin.local.deploy import archive
from fanin_cdk.settings import BadSetting, Settings
from fanin_cdk.stacks import FaninStack

TEMPLATE = "template.json"
ASSETS = "assets"
NOTE = """\
# fanin {version}, as a CloudFormation template

Upload the folder `assets` to a bucket in the region of the stack, then create the stack:

    aws s3 cp --recursive assets s3://BUCKET/fanin/{version}/
    aws cloudformation deploy --stack-name {name} --template-file template.json --s3-bucket BUCKET \\
        --capabilities CAPABILITY_IAM --parameter-overrides AssetsBucket=BUCKET AssetsPrefix=fanin/{version}/

The settings of the stack are fixed: {settings}.
With the package fanin-cdk, `python -m fanin_cdk.template FOLDER --context NAME=VALUE` writes one with others.
"""


def write(folder: Path, context: Mapping[str, str]) -> None:
    """Write the template, its assets, and a note how to deploy them.

    Args:
        folder: where they go; it must not exist, or be empty.
        context: settings (docs/reference/settings.md) that differ from the defaults, as text.

    Raises:
        BadSetting: a setting does not exist, or has an invalid value.
        FileExistsError: the folder has something in it.
    """
    known = {field.name for field in fields(Settings)}
    if unknown := sorted(context.keys() - known):
        raise BadSetting(
            f"there is no setting {', '.join(unknown)}; the settings are {', '.join(sorted(known))}"
        )
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; name a folder that does not exist yet")
    with TemporaryDirectory() as made:
        outdir = Path(made)
        name = _synthesize(outdir, context)
        (folder / ASSETS).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(outdir / f"{name}.template.json", folder / TEMPLATE)
        for asset in json.loads((outdir / f"{name}.assets.json").read_text())["files"].values():
            if asset["source"]["packaging"] == "zip":
                (destination,) = asset["destinations"].values()
                file = folder / ASSETS / destination["objectKey"].removeprefix("${AssetsPrefix}")
                file.write_bytes(archive(outdir / asset["source"]["path"], compressed=True))
    settings = (
        ", ".join(f"{key}={value}" for key, value in context.items())
        or "the defaults of docs/reference/settings.md"
    )
    note = NOTE.format(version=fanin.__version__, name=name, settings=settings)
    (folder / "README.md").write_text(note)


def _synthesize(outdir: Path, context: Mapping[str, str]) -> str:
    """Synthesize the stack; its name."""
    app = cdk.App(
        outdir=str(outdir),
        context=dict(context),
        analytics_reporting=False,
        default_stack_synthesizer=cdk.DefaultStackSynthesizer(
            # CloudFormation replaces both, since the CDK puts them into an Fn::Sub.
            file_assets_bucket_name="${AssetsBucket}",
            bucket_prefix="${AssetsPrefix}",
            generate_bootstrap_version_rule=False,
        ),
    )
    settings = Settings.from_context(app.node)
    stack = FaninStack(app, settings.prefix, settings=settings)
    cdk.CfnParameter(
        stack,
        "AssetsBucket",
        description="Bucket with the zip files of the folder assets; it must be in the region of the stack",
        allowed_pattern=r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
    )
    cdk.CfnParameter(
        stack,
        "AssetsPrefix",
        default=f"fanin/{fanin.__version__}/",
        description="What precedes the names of the zip files; empty, or with a slash at its end",
        allowed_pattern=r"([^/].*/)?",
    )
    app.synth()
    return settings.prefix


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fanin_cdk.template",
        description="Write fanin as a CloudFormation template with zip files.",
    )
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument(
        "--context",
        "-c",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that differs from its default; may be repeated",
    )
    given = parser.parse_args(arguments)
    context = {}
    for setting in given.context:
        name, equals, value = setting.partition("=")
        if not equals:
            parser.error(f"--context takes NAME=VALUE, and got {setting!r}")
        context[name] = value
    try:
        write(given.folder, context)
    except (BadSetting, FileExistsError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
