"""Schemas that foreign servers write, and arguments that models write: whatever is in them, a check ends soon."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialogs.agents.tools.base import OutsideTool, ToolError
from dialogs.agents.tools.schemas import problem_of
from dialogs.driver.run_tools import _arguments
from dialogs.models import ToolCall

MOST_SECONDS = 5.0
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYWORDS = st.sampled_from(
    (
        *("type", "properties", "items", "anyOf", "allOf", "not", "if", "then", "enum", "const", "pattern", "required"),
        *("patternProperties", "additionalProperties", "multipleOf", "uniqueItems", "minimum", "$ref", "$dynamicRef"),
        *("$id", "$schema", "$defs", "$anchor", "dependentSchemas", "contains", "prefixItems", "format"),
        "unevaluatedProperties",
    )
)
WORDS = st.sampled_from(
    (
        *("object", "string", "array", "#", "#/$defs/a", "#/nowhere", "#a", "a", "^(a+)+$", "file:///etc/passwd"),
        *("http://127.0.0.1:9/x", "http://json-schema.org/draft-04/schema#"),
        "https://json-schema.org/draft/2020-12/schema",
    )
)
SCHEMAS = st.recursive(
    WORDS | st.integers() | st.booleans() | st.none() | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS | st.sampled_from(("a", "b")), inner, max_size=5)
    ),
    max_leaves=20,
)


async def never(_arguments: Any, _key: str) -> str:
    return ""


def held_against(arguments: str, schema: Any) -> str:
    """What a model is told of a call with these arguments; empty where it is made."""
    tool = OutsideTool(
        name="tool", description="", parameters={"type": "object", "properties": {}} | schema, perform=never
    )
    try:
        _arguments(ToolCall(name="tool", arguments=arguments), tool)
    except ToolError as error:
        return str(error)
    return ""


@given(schema=st.dictionaries(KEYWORDS, SCHEMAS, max_size=6), arguments=JSON | st.text(max_size=50))
@settings(max_examples=150)
def test_a_check_says_yes_or_why_not(schema: dict[str, Any], arguments: Any) -> None:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)

    begun = time.process_time()

    assert isinstance(held_against(written, schema), str)
    assert time.process_time() - begun < MOST_SECONDS


@given(st.text(alphabet='{}[]",:0123456789eE.-+ntf\\u \x00\ud800', max_size=200))
@settings(max_examples=150)
def test_arguments_may_be_any_text(written: str) -> None:
    assert isinstance(held_against(written, {}), str)


@pytest.mark.parametrize("written", ["[" * 100_000, '{"a":' * 100_000, "9" * 5_000, "\ud800", '{"a": NaN}', "[1e999]"])
def test_odd_arguments_are_a_result(written: str) -> None:
    assert isinstance(held_against(written, {"properties": {"a": {"multipleOf": 0.1}}}), str)


A_NUMBER = {"properties": {"a": {"multipleOf": 0.1}}}


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("[" * 100_000, {}),
        ('{"a": ' + "[" * 100_000, {}),
        ('{"a": ' + "[" * 900 + "]" * 900 + "}", {"properties": {"a": {"type": "string"}}}),
        ('{"a": %s}' % ("9" * 4_000), A_NUMBER),
        ('{"a": 1}', {"properties": {"a": {"$ref": "#/nowhere"}}}),
        ('{"a": 1}', {"$ref": "#"}),
        ('{"a": 1}', {"properties": {"a": {"type": "nonsense"}}}),
    ],
    ids=["no-object", "without-end", "deep", "without-measure", "no-such-reference", "endless", "no-schema"],
)
def test_what_cannot_be_checked_is_a_result_that_says_so(written: str, schema: Any) -> None:
    assert held_against(written, schema)


@pytest.mark.parametrize(
    "there", ["http://127.0.0.1:9/latest/meta-data", "file:///etc/hostname", "other.json", "https://json-schema.org/x"]
)
@pytest.mark.parametrize("word", ["$ref", "$dynamicRef"])
def test_a_tool_whose_schema_refers_to_elsewhere_is_not_taken(there: str, word: str) -> None:
    inside = {"properties": {"a": {"anyOf": [{word: there}]}}}

    assert "refers to something outside itself" in problem_of(inside)
    assert "refers to something outside itself" in held_against('{"a": 1}', inside)


def test_references_inside_are_followed() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "#/definitions/city"}},
        "definitions": {"city": {"type": "string"}},
    }

    assert problem_of(schema) == ""
    assert held_against('{"a": "Ulm"}', schema) == ""
    assert "is not of type 'string'" in held_against('{"a": 1}', schema)


def test_a_pattern_is_left_to_the_server_that_wrote_it() -> None:
    begun = time.process_time()
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"pattern": "^(a+)+$"}, "again": {"$ref": "#"}},
        "patternProperties": {"^(x+)+$": {}},
        "additionalProperties": False,
    }

    for arguments in ({"a": "a" * 40 + "!"}, {"again": {"a": "a" * 40 + "!"}}, {"x" * 40 + "!": 1}):
        assert held_against(json.dumps(arguments), schema) == ""

    assert time.process_time() - begun < MOST_SECONDS


def test_definitions_that_multiply_end() -> None:
    doubling = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    schema = {"$defs": doubling | {"d40": {"type": "object"}}, "allOf": [{"$ref": "#/$defs/d0"}]}
    begun = time.process_time()

    assert "takes too long" in held_against("{}", schema)
    assert time.process_time() - begun < 2 * MOST_SECONDS


def test_many_alike_items_end() -> None:
    begun = time.process_time()

    items = json.dumps({"a": [{"n": [number]} for number in range(20_000)]})

    assert held_against(items, {"properties": {"a": {"type": "array", "uniqueItems": True}}}) == ""
    assert time.process_time() - begun < MOST_SECONDS


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"description": "x" * 70_000}, "longer than 60,000 characters"),
        (json.loads('{"not":' * 50 + "{}" + "}" * 50), "nested deeper than 40 levels"),
        ({"type": "no such type"}, "its schema is wrong"),
        ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "outside itself"),
        ([], "no JSON object"),
    ],
)
def test_schemas_that_are_not_taken(schema: Any, words: str) -> None:
    assert words in problem_of(schema)
