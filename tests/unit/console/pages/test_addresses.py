from __future__ import annotations

import pytest
from starlette.requests import Request

from fanin.console.pages.addresses import id_in
from fanin.errors import BatchNotFound


def asked(text: str) -> Request:
    return Request({"type": "http", "headers": [], "path_params": {"batch_id": text}})


def test_an_id_is_a_number() -> None:
    assert id_in(asked("9007199254740991")) == 2**53 - 1


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "٣", "²", " 1", "9" * 17, "9" * 5000])
def test_nothing_else_is_an_id(text) -> None:
    with pytest.raises(BatchNotFound, match="not an id"):
        id_in(asked(text))
