"""The CDK app of the example: the stack of fanin, and a small stack that uses it.

To deploy it, run this in the root of the checkout::

    npx aws-cdk@2.1148.1 deploy --all --app ".venv/bin/python examples/catalog/app.py"
"""

import sys
from pathlib import Path

import aws_cdk as cdk

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the examples are not installed

from examples.catalog.stack import CatalogStack
from fanin_cdk import FaninStack, Settings


def main() -> None:
    app = cdk.App()
    settings = Settings.from_context(app.node)
    fanin = FaninStack(app, settings.prefix, settings=settings)
    CatalogStack(app, f"{settings.prefix}-catalog", tracker=fanin.tracker)
    app.synth()


if __name__ == "__main__":
    main()
