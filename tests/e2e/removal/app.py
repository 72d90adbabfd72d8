"""A CDK app with a stack that takes its data along when it is deleted, for an emulator."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from fanin_cdk import FaninStack, Settings

app = cdk.App()
tracker = FaninStack(app, "gone", settings=Settings.from_context(app.node)).tracker
removal = tracker._removal()  # which a tracker for an emulator leaves out
# The emulator checks targets against the bus.
statement = iam.PolicyStatement(actions=["events:RemoveTargets"], resources=[tracker.bus.event_bus_arn])
removal.function.add_to_role_policy(statement)
app.synth()
