"""The whole service on one machine, deployed from the same template as to AWS, without account or Docker.

    from fanin.local import down, environment, up

    stack = up()  # the second call does nothing; after an edit it updates the stack
    stack.client("sqs").send_message(QueueUrl=stack.work_queue_url, MessageBody="hello")
    down()

``up`` writes ``.fanin/local.json``, by which ``fanin --local`` and ``FANIN_PROFILE=local`` find the stack.
They find that of the checkout from any folder.

With ``up(auth=True)`` the emulator verifies signatures and enforces policies, and each function gets the
credentials of its own role. The emulator accepts these keys:

- The root user of the account: access key ``test``, or the account number. Root may do everything, and its
  signature is not verified; a test of signatures or policies therefore needs a user or a role.
- An IAM user: ``create_user``, ``put_user_policy``, and the pair that ``create_access_key`` returns.
- A role: all three parts of what ``sts.assume_role`` returns.

A wrong secret is refused with ``SignatureDoesNotMatch`` or ``InvalidSignatureException``, depending on the
service; an unknown key with ``UnrecognizedClientException`` or ``InvalidClientTokenId``.
"""

from fanin.client.local_stack import Stack, read
from fanin.client.local_stack import variables as environment
from fanin.local.deploy import deploy
from fanin.local.locks import exclusive
from fanin.local.stack import CHECKOUT, CONTEXT, INPUTS, App, Status, down, log_file, status, up
from fanin.local.steps import Steps
from fanin.local.synth import synthesize

__all__ = [
    "CHECKOUT",
    "CONTEXT",
    "INPUTS",
    "App",
    "Stack",
    "Status",
    "Steps",
    "deploy",
    "down",
    "environment",
    "exclusive",
    "log_file",
    "read",
    "status",
    "synthesize",
    "up",
]
