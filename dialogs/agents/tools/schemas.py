"""JSON schemas from MCP servers: which are accepted, and checking arguments against one.

Checking loads no other address and takes bounded time, whatever the schema. So patterns, which may take very long, are
not checked: the server does that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from heapq import nlargest
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match, relevance
from jsonschema.validators import extend, validator_for
from referencing import Registry

MOST_CHARS = 60_000
DEEPEST = 40
# Keywords held against a value, in one check: a few definitions that name one another can ask for millions.
MOST_STEPS = 300_000
# Keywords that are held against a value within one another. A schema that refers to itself would go on to the end of
# Python's stack, where the library written in Rust gives up with an error that is no `Exception`.
MOST_LEVELS = 150
# In a list with more items it is not checked whether two are alike.
MOST_COMPARED = 500
# What is told of arguments that do not fit: so many problems, each in so many characters.
MOST_PROBLEMS, MOST_TOLD = 5, 300
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class SchemaTooCostly(ValueError):
    """Checking arguments against the schema takes more steps than any tool needs."""


def problem_of(schema: Any) -> str:
    """Why a tool that describes itself like this is not offered; empty where it is."""
    if not isinstance(schema, Mapping):
        return "its schema is no JSON object"
    try:
        if len(json.dumps(schema)) > MOST_CHARS:
            return f"its schema is longer than {MOST_CHARS:,} characters"
        if elsewhere := next(_leading_out(schema, DEEPEST), None):
            return f"its schema refers to something outside itself: {elsewhere[:100]}"
        checker_for(schema).check_schema(schema)
    except (SchemaTooCostly, RecursionError):
        return f"its schema is nested deeper than {DEEPEST} levels"
    except jsonschema.SchemaError as error:
        return f"its schema is wrong: {error.message[:200]}"
    except Exception as error:
        return f"its schema cannot be used: {type(error).__name__}"
    return ""


def problems(arguments: Any, schema: Mapping[str, Any]) -> list[str]:
    """What in the arguments does not fit, the worst first. Raises jsonschema's SchemaError, and whatever else its
    libraries make of a bad schema."""
    kind = checker_for(schema)
    kind.check_schema(schema)
    # A schema that names its draft would be checked by jsonschema's own class for it, wherever it is referred to.
    unnamed = {name: value for name, value in schema.items() if name != "$schema"}
    # References inside the schema only: an address elsewhere is not asked.
    checker = _counting(kind, iter(range(MOST_STEPS)))(unnamed, registry=Registry())
    worst = nlargest(MOST_PROBLEMS, checker.iter_errors(arguments), key=relevance)
    return [_told(best_match([error])) for error in worst]


def _told(error: Any) -> str:
    words, half = error.message, MOST_TOLD // 2
    words = words if len(words) <= MOST_TOLD else f"{words[:half]}…{words[-half:]}"
    return f"{words} (at {error.json_path})"


def _leading_out(value: Any, levels: int, *, is_root: bool = True) -> Iterator[str]:
    """References to other addresses, and parts that name a draft of their own."""
    if not levels:
        raise SchemaTooCostly
    if isinstance(value, Mapping):
        yield from (there for name in REFERENCES if isinstance(there := value.get(name), str) and there[:1] != "#")
        if not is_root and isinstance(draft := value.get("$schema"), str):
            yield draft
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _leading_out(inner, levels - 1, is_root=False)


def checker_for(schema: Any) -> Any:
    """jsonschema's class for the draft that the schema names, without what may take for ever."""
    return _bounded(validator_for(schema, default=jsonschema.Draft202012Validator))


@cache
def _bounded(kind: Any) -> Any:
    known = kind.VALIDATORS
    less = dict.fromkeys(("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems"), _nothing)
    less |= {"additionalProperties": _unless_patterns(known), "uniqueItems": _unless_many(known)}
    return extend(kind, validators={name: check for name, check in less.items() if name in known})


def _counting(kind: Any, left: Iterator[int]) -> Any:
    """A validator that raises SchemaTooCostly once it has made as many checks as are `left`, or so many in another."""
    level = 0

    def counted(check: Any) -> Any:
        def step(*held: Any) -> Iterator[Any]:
            nonlocal level
            if level >= MOST_LEVELS or next(left, None) is None:
                raise SchemaTooCostly("to check them takes too long")
            level += 1
            try:
                yield from check(*held) or ()
            finally:
                level -= 1

        return step

    return extend(kind, validators={name: counted(check) for name, check in kind.VALIDATORS.items()})


def _nothing(*_checked: Any) -> Iterator[Any]:
    yield from ()


def _unless_patterns(known: Mapping[str, Any]) -> Any:
    """Skip the keyword beside `patternProperties`: which properties are additional depends on patterns."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from known["additionalProperties"](validator, value, instance, schema) or ()

    return check


def _unless_many(known: Mapping[str, Any]) -> Any:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not isinstance(instance, list) or len(instance) <= MOST_COMPARED:
            yield from known["uniqueItems"](validator, value, instance, schema) or ()

    return check
