"""What every role may do, and what every function knows, as one text that is read in reviews.

    python -m tests.infra.grants

renews ``grants.txt``: a line more is a permission more. Which calls of the API a role may make is left out:
``test_access.py`` has that.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.infra.conftest import everything
from tests.infra.iam.conditions import as_list
from tests.infra.iam.templates import ACCOUNT, HASH, REGION, Templates

FILE = Path(__file__).with_name("grants.txt")
CALL_API = "execute-api:Invoke"


def written(templates: Templates) -> str:
    """The text."""
    functions = {
        properties["Role"].rpartition("/")[2]: properties
        for _, properties in templates.of_type("AWS::Lambda::Function")
    }
    lines: list[str] = []
    for role in sorted(templates.roles):
        name = HASH.sub("", role)
        lines += [name, *(f"  trusts {line}" for line in sorted(map(trust, templates.trust(name))))]
        allowed = [one for one in templates.statements(role) if one["Action"] != CALL_API]
        lines += [f"  {line}" for line in sorted({*map(line_of, allowed)})]
        if name in functions:
            known = functions[name].get("Environment", {}).get("Variables", {})
            lines.append(f"  knows {' '.join(sorted(known))}")
    for kind in ("AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy"):
        for _, properties in templates.of_type(kind):
            lines += sorted(lets(properties["PolicyDocument"]["Statement"]))
    return "\n".join(lines).replace(f":{REGION}:{ACCOUNT}:", ":").replace("arn:aws:", "") + "\n"


def trust(statement: dict[str, Any]) -> str:
    (principal,) = statement["Principal"].values()
    return f"{principal}{condition(statement)}"


def line_of(statement: dict[str, Any]) -> str:
    """The actions of a statement, and where it allows or denies them."""
    may = {"Allow": "may", "Deny": "may not"}[statement["Effect"]]
    where = " ".join(sorted(re.sub(r"[0-9a-f]{64}", "…", one) for one in as_list(statement["Resource"])))
    return f"{may} {' '.join(sorted(as_list(statement['Action'])))} on {where}{condition(statement)}"


def lets(statements: list[dict[str, Any]]) -> Iterator[str]:
    """What the policy of a queue or a bucket allows; that it refuses plain HTTP is tested for all of them."""
    for one in statements:
        if one["Effect"] == "Allow":
            yield f"{trust({**one, 'Condition': {}})} {line_of(one)}"


def condition(statement: dict[str, Any]) -> str:
    block = statement.get("Condition")
    return f" if {json.dumps(block, sort_keys=True)}" if block else ""


def current() -> str:
    """The text as it is now."""
    return written(Templates({one.stack.stack_name: one.template.to_json() for one in everything()}))


if __name__ == "__main__":
    FILE.write_text(current())
