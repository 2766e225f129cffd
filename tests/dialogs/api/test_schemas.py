"""What a body may hold, and with which words it is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialogs.api.errors import ApiError
from dialogs.api.reading import BodyCache
from dialogs.api.schemas import ChatBody


def body(**fields: Any) -> ChatBody:
    raw = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello"}]} | fields)
    return BodyCache().read(raw.encode(), root="alice")[0]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens", "seed", "n"])
def test_an_integer_may_be_written_with_a_point(field: str) -> None:
    assert getattr(body(**{field: 1.0}), field) == 1


@pytest.mark.parametrize("number", [1.5, "1", True, 0.0, 2.1e9])
def test_what_is_no_number_of_tokens_is_refused_by_its_name(number: object) -> None:
    with pytest.raises(ApiError) as refused:
        body(max_tokens=number)

    assert refused.value.status == 400
    assert refused.value.param == "max_tokens"
