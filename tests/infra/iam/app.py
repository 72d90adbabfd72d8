"""A CDK app with fanin alone and without checks: quicker than the one that users have."""

import aws_cdk as cdk

from fanin_cdk import FaninStack, Settings

app = cdk.App()
FaninStack(app, "fanin", settings=Settings.from_context(app.node))
app.synth()
