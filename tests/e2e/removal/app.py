"""A CDK app with a stack that takes its data along when it is deleted, for an emulator."""

import aws_cdk as cdk

from fanin_cdk import FaninStack, Settings
from fanin_cdk.removal import Removal

app = cdk.App()
stack = FaninStack(app, "gone", settings=Settings.from_context(app.node))
Removal(stack, "Removal", tracker=stack.tracker)  # which a tracker for an emulator leaves out
app.synth()
