"""The usage normaliser, row by row of what providers send."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dialogs.providers.usage import Dialect, later, normalise
from health.monitor.levels import Usage, UsageUnavailable


def usage(prompt: int, completion: int, total: int | None = None, cached: int | None = None) -> Usage:
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion if total is None else total,
        cached_tokens=cached,
    )


@pytest.mark.parametrize(
    ("dialect", "raw", "expected"),
    [
        # OpenAI, vLLM, LM Studio, OpenRouter, Ollama's /v1: cached tokens are a part of the prompt.
        (
            Dialect.OPENAI,
            {"prompt_tokens": 1000, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 800}},
            usage(1000, 20, cached=800),
        ),
        (Dialect.OPENAI, {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, usage(10, 2)),
        # A reported total stands, even when it counts more than the two.
        (Dialect.OPENAI, {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 15}, usage(10, 2, 15)),
        (Dialect.OPENAI, {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": None}, usage(10, 2)),
        (Dialect.OPENAI, {"prompt_tokens": 10, "completion_tokens": 0}, usage(10, 0)),
        # JSON of a language without whole numbers.
        (Dialect.OPENAI, {"prompt_tokens": 10.0, "completion_tokens": 2.0}, usage(10, 2)),
        (Dialect.OPENAI, {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": None}, usage(10, 2)),
        # Anthropic: the parts of the prompt: test_anthropic.py.
        (Dialect.ANTHROPIC, {"input_tokens": 9, "output_tokens": 4}, usage(9, 4)),
        (
            Dialect.ANTHROPIC,
            {"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": None},
            usage(9, 4),
        ),
        # Everything came from the cache.
        (
            Dialect.ANTHROPIC,
            {"input_tokens": 0, "cache_read_input_tokens": 500, "output_tokens": 4},
            usage(500, 4, cached=500),
        ),
    ],
)
def test_each_provider_is_read_in_its_own_words(dialect: Dialect, raw: dict[str, Any], expected: Usage) -> None:
    assert normalise(raw, dialect=dialect) == expected


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (None, "the provider reported no usage"),
        ({}, "prompt_tokens is missing"),
        ([1, 2], "usage is no object but list"),
        ("10", "usage is no object but str"),
        ({"prompt_tokens": 10}, "completion_tokens is missing"),
        ({"completion_tokens": 10}, "prompt_tokens is missing"),
        ({"prompt_tokens": None, "completion_tokens": 1}, "prompt_tokens is missing"),
        ({"prompt_tokens": -1, "completion_tokens": 1}, "prompt_tokens is no token count: '-1'"),
        ({"prompt_tokens": "10", "completion_tokens": 1}, "prompt_tokens is no token count: '10'"),
        ({"prompt_tokens": True, "completion_tokens": 1}, "prompt_tokens is no token count: 'True'"),
        ({"prompt_tokens": 1.5, "completion_tokens": 1}, "prompt_tokens is no token count: '1.5'"),
        ({"prompt_tokens": math.nan, "completion_tokens": 1}, "prompt_tokens is no token count: 'nan'"),
        ({"prompt_tokens": math.inf, "completion_tokens": 1}, "prompt_tokens is no token count: 'inf'"),
        ({"prompt_tokens": 2**31, "completion_tokens": 1}, "prompt_tokens is no token count: '2147483648'"),
        ({"prompt_tokens": [10], "completion_tokens": 1}, "prompt_tokens is no token count: '[10]'"),
        ({"prompt_tokens": 10, "completion_tokens": -1}, "completion_tokens is no token count: '-1'"),
        ({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": -1}, "total_tokens is no token count: '-1'"),
        # Servers that do not count send zeros.
        ({"prompt_tokens": 0, "completion_tokens": 12}, "prompt_tokens is 0"),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, "prompt_tokens is 0"),
    ],
)
def test_what_is_missing_or_malformed_is_unavailable_and_says_why(raw: Any, why: str) -> None:
    assert normalise(raw) == UsageUnavailable(why)


@pytest.mark.parametrize(
    ("dialect", "raw", "why"),
    [
        # A malformed part of a sum spoils the sum.
        (
            Dialect.ANTHROPIC,
            {"input_tokens": 3, "cache_read_input_tokens": "17000", "output_tokens": 1},
            "cache_read_input_tokens is no token count: '17000'",
        ),
        (Dialect.ANTHROPIC, {"cache_read_input_tokens": 17, "output_tokens": 1}, "input_tokens is missing"),
        # `prompt_n` alone leaves out what was cached, and the other way round.
        (Dialect.LLAMACPP_TIMINGS, {"prompt_n": 5, "predicted_n": 1}, "cache_n is missing"),
        (Dialect.LLAMACPP_TIMINGS, {"cache_n": 5, "predicted_n": 1}, "prompt_n is missing"),
        (
            Dialect.ANTHROPIC,
            {"input_tokens": 2**31 - 1, "cache_read_input_tokens": 2**31 - 1, "output_tokens": 1},
            "input_tokens is too large",
        ),
    ],
)
def test_a_sum_needs_its_parts(dialect: Dialect, raw: dict[str, Any], why: str) -> None:
    assert normalise(raw, dialect=dialect) == UsageUnavailable(why)


@pytest.mark.parametrize(
    "cached",
    [
        {"cached_tokens": "800"},
        {"cached_tokens": -1},
        {"cached_tokens": 11},  # more than the prompt
        {"cached_tokens": {"audio": 1}},
        "800",
    ],
)
def test_a_cached_count_that_cannot_be_right_is_left_out(cached: Any) -> None:
    raw = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": cached}

    assert normalise(raw) == usage(10, 2)


TIMINGS = {"cache_n": 236, "prompt_n": 1, "predicted_n": 9}


def test_usage_comes_before_timings_which_only_add_what_was_cached() -> None:
    raw = {"prompt_tokens": 240, "completion_tokens": 9}

    assert normalise(raw, timings=TIMINGS) == usage(240, 9, cached=236)
    assert normalise({**raw, "prompt_tokens_details": {"cached_tokens": 5}}, timings=TIMINGS) == usage(240, 9, cached=5)


def test_broken_timings_change_nothing() -> None:
    assert normalise(None, timings={"cache_n": 1}) == UsageUnavailable("the provider reported no usage")
    assert normalise({"prompt_tokens": 2, "completion_tokens": 1}, timings={}) == usage(2, 1)


def test_of_two_reports_the_later_complete_one_holds() -> None:
    first, second, none = usage(10, 1), usage(10, 7), UsageUnavailable("broken")

    assert later(first, second) == second
    assert later(first, none) == first
    assert later(none, second) == second
    assert later(none, UsageUnavailable("broken too")) == UsageUnavailable("broken too")
