"""A queue that refuses entries, and producers that do not wait."""

import pytest

from fanin.adapters.backoff import Backoff

REAL_WAIT = Backoff.wait


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(Backoff, "wait", lambda self, attempt, at_least=None: None)


def items_of(messages):
    return {message["MessageAttributes"]["fanin-item"]["StringValue"] for message in messages}


def partly(refuse, *, sender_fault=False):
    """SendMessageBatch that refuses the entries for which ``refuse`` says so, and sends the others."""

    def answer(real, arguments):
        entries = arguments["Entries"]
        bad = [entry for entry in entries if refuse(entry)]
        good = [entry for entry in entries if entry not in bad]
        result = real(**{**arguments, "Entries": good}) if good else {}
        failed = [
            {"Id": entry["Id"], "SenderFault": sender_fault, "Code": "InternalError", "Message": "sorry"}
            for entry in bad
        ]
        return {**result, "Failed": failed}

    return answer
