"""docs/reference/api.md against the code."""

import json
import re
import time
from pathlib import Path

from fanin import names
from fanin.domain import limits
from fanin.domain.access import AccessGroup
from fanin.domain.ids import MAX_COUNT
from fanin.domain.marks import WEIGHT
from fanin.entry.http.route import MAX_BODY
from fanin.entry.http.table import ROUTES
from fanin.errors import STATUS
from fanin.wire.actions import MAX_TEXT, MESSAGE, Action, ActionOutcome, Caller, CallerKind, log_fields
from fanin.wire.batches import OPEN_BATCH
from fanin.wire.json_types import decode_time

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text()


def test_it_has_every_route_and_no_other():
    told = set(re.findall(r"`(GET|POST|DELETE|PUT|PATCH) (/[^`\s]*)`", TEXT.split("## Routes")[1]))
    assert told == {(route.method, route.path) for route in ROUTES}


def test_its_deadline_is_ahead():
    (deadline,) = re.findall(r'POST /v1/batches +.*"deadline": "(.+?)"', TEXT)
    assert decode_time(deadline) > time.time() * 1000


def test_it_names_the_attribute_with_the_item_id():
    assert f"`{names.ITEM_ATTRIBUTE}`" in TEXT


def test_it_has_every_problem_with_its_status():
    table = TEXT.split("## Problems")[1].split("## ")[0]
    told = {
        (int(status), code)
        for status, codes in re.findall(r"^\| (\d{3}) \| (.+?) \|", table, re.MULTILINE)
        for code in re.findall(r"`([a-z-]+)`", codes)
    }
    ours = {(404, "no-such-path"), (405, "method-not-allowed"), (500, "internal-error")}
    assert told == ours | {(status, error.code) for error, status in STATUS.items()}


def test_it_has_the_limits_as_they_are():
    table = TEXT.split("## Limits")[1].split("## ")[0]
    rows = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE))
    assert rows["body"] == f"{MAX_BODY // 2**20} MiB"
    assert rows["marks"].startswith(f"a weight of {limits.MAX_MARKS:,}:")
    assert rows["marks"].endswith(f" {WEIGHT}")
    assert rows["items added"].startswith(f"{MAX_COUNT:,} ")
    assert rows["`user_key`"] == f"{limits.MAX_USER_KEY} characters"
    assert rows["`Idempotency-Key`"] == f"{limits.MAX_IDEMPOTENCY_KEY} characters"
    assert rows["`metadata`"] == (
        f"{limits.MAX_METADATA} pairs, keys of {limits.MAX_METADATA_KEY} "
        f"and values of {limits.MAX_METADATA_VALUE} characters"
    )
    assert rows["`reason`"] == f"{limits.MAX_REASON:,} characters"
    assert rows["`limit` of a batch"] == f"{limits.MAX_LIMIT:,}"
    assert rows["`lifetime`"] == f"{limits.MIN_LIFETIME} seconds to {limits.MAX_LIFETIME // 86_400} days"
    assert rows["page"] == f"{limits.MAX_PAGE:,}"


def test_it_has_every_action_of_the_action_log():
    section = TEXT.split("## The action log")[1].split("## ")[0]
    rows = re.findall(r"^\| .+ \| (.+) \|$", section, re.MULTILINE)
    told = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(told) == sorted(route.operation for route in ROUTES if route.action)
    assert f" {MAX_TEXT:,} characters" in section


def test_its_line_of_the_action_log_is_as_the_code_writes_it():
    # Given the line, and the action that it tells of
    section = TEXT.split("## The action log")[1].split("## ")[0]
    line = json.loads(section.split("```json")[1].split("```")[0])
    action = Action(
        line["action"],
        line["object"],
        Caller(CallerKind(line["caller"].pop("kind")), **line["caller"]),
        ActionOutcome(**line["outcome"]),
        decode_time(line["at"]),
        line["result"],
        AccessGroup(line["group"]),
        line["request_id"],
    )
    # Then its fields are those that are logged, in their order
    logged = {"level": "INFO", "message": MESSAGE, **log_fields(action)}
    assert list(line) == list(logged)
    assert line | {"caller": {"kind": action.caller.kind, **line["caller"]}} == logged
    # And the query names fields that there are
    query = section.split("```\n")[-2]
    assert f'filter message = "{MESSAGE}"' in query
    tops = {name.partition(".")[0] for name in re.findall(r"[a-z]+\.[a-z_]+", query)}
    assert tops <= set(logged)


def test_it_names_every_option_of_a_batch():
    (row,) = [line for line in TEXT.splitlines() if line.startswith("| `POST /v1/batches` |")]
    assert set(OPEN_BATCH.definition["properties"]) <= set(re.findall(r"`(\w+)`", row))
