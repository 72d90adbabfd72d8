"""Runs in the emulator's own Python: one DynamoDB with the patches of ``tuned_queries.py``, one without.

Both are given the same requests, in one process and without a server. Usage:
``python -I emulated_queries.py <tuned_queries.py> <seed>``; prints what was found, as JSON.
"""

import importlib.util
import json
import random
import sys
import threading
from pathlib import Path
from typing import Any

STEPS = 600


def load(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


requests = load("emulated_requests", str(Path(__file__).with_name("emulated_requests.py")))
TEXT = requests.TEXT


def require(module: Any, attribute: str) -> None:
    assert hasattr(module, attribute), attribute


def databases(tuned_file: str) -> tuple[Any, Any]:
    tuned = importlib.import_module("ministack.services.dynamodb")
    plain = load("plain", tuned.__file__)
    load("tuned_queries", tuned_file).tune(require)
    assert tuned._query.__module__ != plain._query.__module__
    return tuned, plain


def create(database: Any) -> None:
    for table, sort in ((TEXT, "S"), (requests.NUMBERED, "N"), (requests.INDEXED, "S")):
        index = {
            "IndexName": "by-colour",
            "KeySchema": [
                {"AttributeName": "colour", "KeyType": "HASH"},
                {"AttributeName": "part", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
        status, *_ = database._create_table(
            {
                "TableName": table,
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [
                    {"AttributeName": "batch_id", "KeyType": "HASH"},
                    {"AttributeName": "part", "KeyType": "RANGE"},
                ],
                "AttributeDefinitions": [
                    {"AttributeName": "batch_id", "AttributeType": "N"},
                    {"AttributeName": "part", "AttributeType": sort},
                    *(
                        [{"AttributeName": "colour", "AttributeType": "S"}]
                        if table == requests.INDEXED
                        else []
                    ),
                ],
                **({"GlobalSecondaryIndexes": [index]} if table == requests.INDEXED else {}),
            }
        )
        assert status == 200


def compare(tuned: Any, plain: Any, seed: int) -> dict[str, int]:
    """Give both the same requests; the answers must be equal."""
    random_requests = requests.Requests(seed)
    found = {"queries": 0, "refused": 0, "pages": 0, "rows": 0}
    for _ in range(STEPS):
        operation, request = random_requests.next()
        answers = []
        for database in (tuned, plain):
            try:
                status, _, body = getattr(database, operation)(json.loads(json.dumps(request)))
                answers.append((status, json.loads(body)))
            except Exception as error:  # noqa: BLE001
                answers.append((500, repr(error)))
        assert answers[0] == answers[1], (operation, request, *answers)
        if operation == "_query":
            status, answer = answers[0]
            found["queries"] += 1
            found["refused"] += status != 200
            found["pages"] += status == 200 and "LastEvaluatedKey" in answer
            found["rows"] += len(answer.get("Items", [])) if status == 200 else 0
    state = tuned.get_state()["tables"].get(TEXT)
    assert not any("sort keys" in str(key) for key in [*state, *state.get("_index_members", ())])
    return found


def evaluated(database: Any, rows: int) -> list[int]:
    """How many rows are evaluated for pages of ten rows out of so many."""
    for row in range(rows):
        item = {"batch_id": {"N": "9"}, "part": {"S": f"a/{row:06}"}}
        database._put_item({"TableName": TEXT, "Item": item})
    evaluate, count = database._evaluate_condition, 0

    def counting(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        return evaluate(*arguments, **options)

    database._evaluate_condition = counting
    counts = []
    start = {"batch_id": {"N": "9"}, "part": {"S": f"a/{rows // 2:06}"}}
    for condition, options in (
        ("batch_id = :b", {}),
        ("batch_id = :b AND begins_with(part, :s)", {}),
        ("batch_id = :b AND begins_with(part, :s)", {"ExclusiveStartKey": start}),
        ("batch_id = :b AND part > :s", {"ScanIndexForward": False, "ExclusiveStartKey": start}),
    ):
        count = 0
        values = {":b": {"N": "9"}, **({":s": {"S": "a/"}} if ":s" in condition else {})}
        status, _, body = database._query(
            {
                "TableName": TEXT,
                "KeyConditionExpression": condition,
                "ExpressionAttributeValues": values,
                "Limit": 10,
                **options,
            }
        )
        assert status == 200, body
        assert json.loads(body)["Count"] == 10
        counts.append(count)
    database._evaluate_condition = evaluate
    return counts


def at_once(database: Any) -> int:
    """Query while other threads add and remove rows; how many rows there are in the end."""
    table, errors = database._tables.get(TEXT), []
    sys.setswitchinterval(1e-6)

    def write(thread: int) -> None:
        one = random.Random(thread)  # noqa: S311
        for _ in range(4_000):
            name = f"{thread}/{one.randrange(200):03}"
            if one.random() < 0.5:
                database._set_item(table, "5", name, {"batch_id": {"N": "5"}, "part": {"S": name}})
            else:
                database._remove_item(table, "5", name)

    def query() -> dict[str, Any]:
        request = {
            "TableName": TEXT,
            "KeyConditionExpression": "batch_id = :b",
            "ExpressionAttributeValues": {":b": {"N": "5"}},
        }
        status, _, body = database._query(request)
        if status != 200:
            errors.append(body)
        answer: dict[str, Any] = json.loads(body)
        return answer

    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        table.pop("_index_members", None)  # as when all rows are replaced
        query()
    assert not errors
    left = [item["part"]["S"] for item in query()["Items"]]
    assert left == sorted(table["items"]["5"]) == table["_index_members"]["/sort keys"]["5"]
    return len(left)


def main(tuned_file: str, seed: str) -> None:
    tuned, plain = databases(tuned_file)
    for database in (tuned, plain):
        create(database)
    found = compare(tuned, plain, int(seed))
    print(  # noqa: T201
        json.dumps(
            {
                **found,
                "evaluated": [evaluated(tuned, 100), evaluated(tuned, 3_000)],
                "evaluated by the emulator alone": evaluated(plain, 100),
                "left": at_once(tuned),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
