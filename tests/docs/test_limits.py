"""docs/reference/limits.md against the code."""

import re
from pathlib import Path

from fanin.domain import ids, limits
from fanin.domain.batch import MAX_MILESTONES, WHOLE
from fanin.domain.marks import WEIGHT
from fanin.domain.targets import MAX_TARGETS
from fanin.domain.totals import MAX_TOTALS

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text()
DAY = 86_400
KIB = 1_024


def test_every_limit_is_the_one_of_the_code():
    assert dict(re.findall(r"^\| (?!limit|---)(.+?) \| (.+?) \|$", TEXT, re.MULTILINE)) == {
        "items of a batch": f"2^{ids.MAX_ITEMS.bit_length() - 1}, about 10^12",
        "items that one call adds": f"2^{(ids.MAX_COUNT + 1).bit_length() - 1} - 1",
        "key of an item": f"{ids.MAX_KEY} bytes in UTF-8",
        "keys that one call adds": f"{ids.MAX_KEYS}",
        "weight of the marks of one call": (
            f"{limits.MAX_MARKS:,}: an id 1; a failure, a range or a count {WEIGHT}"
        ),
        "pending items of a bounded batch": f"{limits.MAX_LIMIT:,}",
        "lifetime of a batch": (
            f"{limits.MIN_LIFETIME // 60} minute to {limits.MAX_LIFETIME // DAY} days; 30 days by default"
        ),
        "metadata": (
            f"{limits.MAX_METADATA} pairs of {limits.MAX_METADATA_KEY}"
            f" and {limits.MAX_METADATA_VALUE} characters"
        ),
        "totals of a batch": f"{MAX_TOTALS}",
        "result of an item, as JSON": f"{limits.MAX_RESULT // KIB**2} MiB",
        "targets of a batch": f"{MAX_TARGETS}",
        "milestones of a batch": f"{MAX_MILESTONES} whole percents, from 1 to {WHOLE}",
        "kept message of a failed item": (
            f"{limits.MAX_KEPT_INLINE // KIB} KiB in a row; larger ones are in the bucket, or in a row of"
            f" up to {limits.MAX_KEPT_IN_ROW // KIB} KiB where there is none"
        ),
        "messages that one call of failures brings": f"{limits.MAX_FAILED_MESSAGES // KIB**2} MiB",
        "recipients of a scatter": f"{limits.MAX_RECIPIENTS:,}",
        "message or reply of a scatter": (
            f"{limits.MAX_REPLY // KIB} KiB; larger ones by a claim check,"
            f" of up to {limits.MAX_CLAIM // KIB**3} GiB"
        ),
        "repeats of a scatter": f"{limits.MAX_RETRIES}",
        "attributes of your own on a scatter's message": f"{limits.MAX_ATTRIBUTES}",
        "payloads of a put into a buffer": (
            f"{limits.MAX_WORK}, and {limits.MAX_PAYLOAD // KIB} KiB together"
        ),
        "longest wait for work of a buffer": f"{limits.MAX_WAIT} seconds",
        "envelopes that one call claims": f"{limits.MAX_CLAIMS:,}",
        "lease of an envelope": f"{limits.MAX_ENVELOPE_LEASE // 3_600} hours",
        "lease of a registration": f"{limits.MIN_LEASE} seconds to {limits.MAX_LEASE // DAY} days",
        "pattern of a route": f"{limits.MAX_PATTERN:,} characters of JSON",
        "routed event": f"{limits.MAX_EVENT // KIB} KiB",
        "rows that one call of the API reads": f"{limits.MAX_ROWS}",
    }
