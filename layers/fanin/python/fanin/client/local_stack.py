"""The file ``.fanin/local.json``, which says where the local stack is: its form, its reader and its writer.

``fanin local up`` writes it; ``Tracker.local()``, ``FANIN_PROFILE=local`` and ``fanin --local`` read it. They
search the current folder and those above it first, then the folders that ``local_roots`` remembers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fanin.client import local_roots
from fanin.errors import NotConfigured
from fanin.names import ENV_PROFILE

if TYPE_CHECKING:
    import boto3

FOLDER: Final = ".fanin"
FILE: Final = "local.json"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack deployed to the emulator, and where each part of it is.

    Attributes:
        endpoint_url: the emulator, for every AWS service.
        api_url: base URL of the HTTP API; append ``/v1/…``.
        region: AWS region.
        account: AWS account number, 12 digits.
        access_key_id: the key of the account's root user; the key of an IAM user works too.
        secret_access_key: the secret of that key.
        auth: whether the emulator verifies signatures and enforces policies.
        pid: process id of the emulator.
        port: TCP port of the emulator.
        log_file: path of the emulator's log.
        fingerprint: hash of the assembly that was deployed.
        batches_table: name of the table of batches.
        words_table: name of the table of words.
        parts_table: name of the table of parts.
        directory_table: name of the directory's table.
        bus: name of the event bus.
        work_queue_url: queue for work; a message that lands in its dead-letter queue fails its item.
        ack_queue_url: queue for acknowledgements.
        scatter_queue_url: queue of the worker that sends a scatter's messages.
        redrive_queue_url: queue of the worker that sends failed messages again.
        reply_queue_url: queue for replies to scatters.
        targets_queue_url: queue of jobs for targets.
        claims_bucket: bucket for payloads too large for a reply.
        schedule_group: group of the schedules that deadlines set.
        schedule_role_arn: role with which those schedules call the timer.
        timer_arn: function that those schedules call.
        timer_dlq_arn: queue for the calls that failed.
        router_arn: function that the rules of routes call.
        buffer_prefix: prefix of the names of the queues that fanin makes for buffers.
        buffer_dead_letters_arn: queue for the dead letters of those queues.
        outputs: of all stacks that were deployed together, by name.
    """

    endpoint_url: str
    api_url: str
    region: str
    account: str
    access_key_id: str
    secret_access_key: str
    auth: bool
    pid: int
    port: int
    log_file: str
    fingerprint: str
    batches_table: str
    words_table: str
    parts_table: str
    directory_table: str
    bus: str
    work_queue_url: str
    ack_queue_url: str
    scatter_queue_url: str
    redrive_queue_url: str
    reply_queue_url: str
    targets_queue_url: str
    claims_bucket: str
    schedule_group: str
    schedule_role_arn: str
    timer_arn: str
    timer_dlq_arn: str
    router_arn: str
    buffer_prefix: str
    buffer_dead_letters_arn: str
    outputs: dict[str, str]

    def session(self) -> boto3.Session:
        """A boto3 session with the root user's keys, whatever the environment holds."""
        import boto3  # noqa: PLC0415 - takes longer than a whole command that only calls the API

        return boto3.Session(self.access_key_id, self.secret_access_key, region_name=self.region)

    def client(self, service: str) -> Any:
        """A boto3 client for the stack, with the root user's keys; annotate the result with its type stub.

        Args:
            service: boto3's name of the service, such as ``sqs``.
        """
        return self.session().client(service, endpoint_url=self.endpoint_url)


_FIELDS: Final = tuple(field.name for field in fields(Stack))


def current() -> Stack:
    """The stack that is described in the current folder or above it, else the one that was started last.

    Raises:
        NotConfigured: no folder has such a file; or the first one found is damaged, or lacks a field; or the
            current folder was deleted.
    """
    try:
        start = Path.cwd()
    except FileNotFoundError as error:
        raise NotConfigured("the current folder was deleted; go to another one") from error
    file = _first((start, *start.parents, *local_roots.remembered()))
    if file is None:
        raise NotConfigured(
            f"there is no {FOLDER}/{FILE} in {start} or above, and no local stack is known that is up;"
            f" start it with `fanin local up`. If it is up elsewhere, run `unset {ENV_PROFILE}` and"
            ' `eval "$(fanin local env)"`'
        )
    return _described(file)


def nearest(start: Path) -> Stack:
    """The stack that the nearest file describes, in a folder or above it.

    Raises:
        NotConfigured: no folder has such a file; or the nearest one is damaged, or lacks a field.
    """
    file = _first((start, *start.parents))
    if file is None:
        raise NotConfigured(
            f"there is no {FOLDER}/{FILE} in {start} or above; start the local stack with `fanin local up`"
        )
    return _described(file)


def _first(roots: Iterable[Path]) -> Path | None:
    return next((path for path in map(_file, roots) if path.exists()), None)


def _described(file: Path) -> Stack:
    """Read a description.

    Fields that this version of fanin does not know are ignored, so that a client of another version can use
    the stack.
    """
    try:
        values = _load(file)
    except ValueError as error:
        raise NotConfigured(f"{file} is damaged: {error}; run `fanin local up` again") from error
    if absent := [name for name in _FIELDS if name not in values]:
        raise NotConfigured(
            f"{file} is damaged: the field {absent[0]} is missing; run `fanin local up` again"
        )
    return Stack(**{name: values[name] for name in _FIELDS})


def read(root: Path) -> Stack | None:
    """The stack described under a root, as this very version of fanin wrote it.

    Returns:
        None if there is no description, if it is damaged, or if another version wrote it: in each of these
        cases ``up`` has to deploy again.
    """
    try:
        values = _load(_file(root))
    except (FileNotFoundError, ValueError):
        return None
    return Stack(**values) if values.keys() == set(_FIELDS) else None


def write(root: Path, stack: Stack) -> None:
    """Save the description; a reader sees the old one or the new one, never half of it."""
    target = _file(root)
    draft = target.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(stack), indent=2) + "\n")
    draft.replace(target)


def remove(root: Path) -> None:
    """Delete the description, if there is one."""
    _file(root).unlink(missing_ok=True)


def _file(root: Path) -> Path:
    return root / FOLDER / FILE


def _load(file: Path) -> dict[str, Any]:
    """The file's JSON object.

    Raises:
        FileNotFoundError: there is no file.
        ValueError: the file does not hold a JSON object in UTF-8.
    """
    values = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise ValueError(f"it holds a JSON {type(values).__name__} instead of an object")  # noqa: TRY004 - damage
    return values
