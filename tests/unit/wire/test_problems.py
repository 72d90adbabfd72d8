"""Problems on the wire: what the service writes is what the document promises."""

import json

import pytest

from fanin import errors
from fanin.entry.http import problems
from fanin.entry.http.openapi import document
from fanin.entry.http.validation import checked
from fanin.errors import InvalidRequest
from fanin.wire.problems import DOCUMENT, PROBLEM


@pytest.mark.parametrize("error", [errors.BatchNotFound("no"), errors.Throttled("slow down", retry_after=7)])
def test_a_problem_is_of_its_shape(error):
    body = checked(PROBLEM, problems.of(error, "r").body or "")
    assert body["type"] == f"urn:fanin:problem:{error.code}"
    assert set(body) - {"retry_after"} == set(PROBLEM.required)


def test_problems_may_have_more_members_as_the_rfc_allows():
    body = '{"type": "t", "title": "T", "status": 409, "detail": "d", "request_id": "r", "more": 1}'
    assert checked(PROBLEM, body)["more"] == 1
    with pytest.raises(InvalidRequest, match="/status must be a whole number from 400 to 599, not 200"):
        checked(PROBLEM, body.replace("409", "200"))


def test_the_document_is_of_its_own_shape():
    assert checked(DOCUMENT, json.dumps(document([])))["openapi"] == "3.1.0"
