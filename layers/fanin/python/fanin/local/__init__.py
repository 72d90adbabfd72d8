"""The whole service on one machine, from the same template as in AWS: no account, no Docker.

    from fanin.local import down, environment, up

    stack = up()  # a second time it does nothing; after an edit it updates
    stack.client("sqs").send_message(QueueUrl=stack.work_queue_url, MessageBody="hello")
    down()

``up`` writes ``.fanin/local.json``; ``fanin --local`` and ``FANIN_PROFILE=local`` find it from there.

With ``up(auth=True)`` the emulator verifies signatures and enforces policies, and each function has its own
role's credentials. The keys it knows:

- root of the account: access key ``test``, or the account's number. It may do everything, and its signature
  is not verified, so tests of either need a user or a role;
- an IAM user: ``create_user``, ``put_user_policy``, and the pair that ``create_access_key`` answers;
- a role: what ``sts.assume_role`` answers, all three parts.

A wrong secret of these is refused (``SignatureDoesNotMatch`` or ``InvalidSignatureException``, by service),
and so is any other key (``UnrecognizedClientException`` or ``InvalidClientTokenId``).
"""

from fanin.local.deploy import deploy
from fanin.local.stack import CHECKOUT, CONTEXT, INPUTS, Status, down, status, up
from fanin.local.state import Stack, environment, read
from fanin.local.synth import synthesize

__all__ = [
    "CHECKOUT",
    "CONTEXT",
    "INPUTS",
    "Stack",
    "Status",
    "deploy",
    "down",
    "environment",
    "read",
    "status",
    "synthesize",
    "up",
]
