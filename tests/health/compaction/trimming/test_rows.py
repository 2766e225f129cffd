"""Results of tools in rows: fewer tokens, the same values in the same order."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.compaction.trimming.json_rows import ONE_LINE, in_rows

LONG = "x" * ONE_LINE


@pytest.mark.parametrize(
    ("told", "rows"),
    [
        ('{"id": "W1", "status": "sent"}', "id=W1 status=sent"),
        ('{"ok": true, "left": null, "price": 1.50}', "ok=true left=null price=1.50"),
        ('{"tags": ["red", "large"], "none": [], "more": {}}', "tags=red, large none=[] more={}"),
        ('{"order": "W1", "items": [{"id": 7}, {"id": 8}]}', "order=W1 items: id=7; id=8"),
        ('[{"id": 7}, {"id": 8}]', "id=7; id=8"),
        (f'{{"order": "W1", "items": [{{"id": 7}}], "to": "{LONG}"}}', f"order=W1 items:\nid=7\nto={LONG}"),
        ('{"exit": 1, "output": "first\\nsecond"}', "exit=1 output:\nfirst\nsecond"),
        ('{"id": 7}\n{"id": 8}', "id=7\nid=8"),
        ('done:\n{"id": 7}', "done:\nid=7"),
        ("[1, 2]", "1; 2"),
    ],
)
def test_json_becomes_rows(told: str, rows: str) -> None:
    assert in_rows(told) == rows


def test_what_no_database_or_no_provider_takes_stays_escaped() -> None:
    assert in_rows('{"a": "x\\u0000y", "\\ud83d": "\\ud83d\\ude42"}') == "a=x\\u0000y \\ud83d=\U0001f642"


@pytest.mark.parametrize("told", ["", "plain words", "{not json}", '{"a": 1, "a": 2}', "[INFO] started", "x{\ny}"])
def test_what_is_no_json_stays_as_it_is(told: str) -> None:
    assert in_rows(told) == told


def test_a_nest_deeper_than_a_reader_follows_stays_json() -> None:
    assert '{"a"' in in_rows('{"a": ' * 30 + "1" + "}" * 30)


SCALARS = st.text("ab1 é", max_size=8) | st.integers() | st.booleans() | st.none()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("kmn", min_size=1, max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text("kmn", min_size=1, max_size=3), VALUES, min_size=1, max_size=4))
def test_every_value_stands_in_the_order_of_the_original(value: dict[str, object]) -> None:
    rows, at = in_rows(json.dumps(value)), 0

    for said in _said(value):
        at = rows.find(said, at)
        assert at >= 0
        at += len(said)


def _said(value: object) -> list[str]:
    if isinstance(value, dict):
        return [said for one in value.values() for said in _said(one)]
    if isinstance(value, list):
        return [said for one in value for said in _said(one)]
    return [value if isinstance(value, str) else json.dumps(value)]
