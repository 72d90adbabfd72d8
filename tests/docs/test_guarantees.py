"""docs/explanation/guarantees.md against the code."""

import re

from fanin import errors
from fanin.errors import STATUS, FaninError
from fanin.testing import InMemoryService
from tests.docs import pages

TEXT = pages.text("explanation/guarantees.md")
AFTER = TEXT.split("## After an error")[1].split("\n## ")[0]


def test_it_says_of_every_error_that_leaves_a_doubt_what_to_do() -> None:
    told = set(re.findall(r"`([A-Z]\w+)`", AFTER))
    assert told >= {"OutcomeUnknown", "PartlyMarked", "Throttled", "ServiceUnavailable"}
    assert all(issubclass(getattr(errors, name), FaninError) for name in told)


def test_it_says_which_errors_a_repeat_may_help() -> None:
    (sentence,) = re.findall(
        r"^`retryable` is true for (.+), and false for `OutcomeUnknown`", AFTER, re.MULTILINE
    )
    retryable = {error.__name__ for error in STATUS if error.retryable}
    assert set(re.findall(r"`(\w+)`", sentence)) == retryable


def test_a_producer_that_died_goes_on_as_it_says() -> None:
    # Given rows of which the first run reads a part
    (example,) = pages.code("explanation/guarantees.md")
    service, runs = InMemoryService(), []

    def rows():
        runs.append("begun")
        yield from ("a", "b")
        if len(runs) == 1:
            raise OSError("the producer dies")
        yield "c"

    scope = {"tracker": service.tracker, "queue_url": service.queue("rows"), "rows": rows}
    # When it runs twice
    for _ in range(2):
        try:
            exec(compile(example, "docs/explanation/guarantees.md", "exec"), scope)  # noqa: S102
        except OSError:
            continue
    # Then there is one batch of three items
    (batch,) = service.tracker.iter_batches("closed")
    assert (len(runs), batch.items) == (2, 3)
    assert list(service.tracker.iter_batches("open")) == []
