"""Whole requests: everything that is sent is counted, once."""

from __future__ import annotations

from typing import Any

import pytest

from health.compaction.reading.messages import parse
from health.compaction.terms.ports import counted
from health.compaction.terms.units import total
from health.tokens.counters import count_text, counter_for
from health.tokens.images import media_tokens
from health.tokens.messages import count_messages, overhead_tokens

CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"query": "tides at Lisbon"}'}}
TOOL = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Finds pages.",
        "parameters": {
            "type": "object",
            "required": ["query"],
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "sort": {"enum": ["new", "best"]},
                "filter": {"type": "object", "properties": {"days": {"type": ["integer", "null"]}}},
                "sites": {"type": "array", "items": {"type": "string"}},
            },
        },
    },
}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "You answer briefly."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "When is high tide?"}, {"type": "image_url", "image_url": {}}],
    },
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "I must look it up."},
    {"role": "tool", "tool_call_id": "call_1", "content": "High tide at 14:05."},
    {"role": "assistant", "content": "At five past two."},
]


@pytest.mark.parametrize(("model", "each"), [("gpt-4o", 4), ("llama-3", 5), ("mistral-7b", 5), ("phi-4", 4)])
def test_an_empty_message_costs_four_or_five_and_the_answer_is_opened(model: str, each: int) -> None:
    empty = [{"role": "user", "content": ""}] * 7

    assert count_messages(empty, model) == 7 * each + 3


def test_the_sum_is_openais_own_formula() -> None:
    said = [{"role": "user", "content": "hello world"}, {"role": "assistant", "content": "Good day, 你好"}]

    assert count_messages(said, "gpt-4o") == sum(3 + 1 + count_text(one["content"], "gpt-4o") for one in said) + 3


@pytest.mark.parametrize("model", ["gpt-4o", "llama-3", "mistral-nemo", "unknown"])
def test_calls_reasoning_images_and_tools_are_counted(model: str) -> None:
    bare = [{**message, "content": "", "tool_calls": [], "reasoning_content": None} for message in CHAT]
    arguments = count_text(CALL["function"]["arguments"], model)  # type: ignore[index]

    assert count_messages(CHAT, model) > count_messages(bare, model) + 100 + arguments + 20
    assert count_messages(CHAT, model, [TOOL]) > count_messages(CHAT, model) + 30


def test_a_results_id_is_sent_so_it_is_counted() -> None:
    result = {"role": "tool", "content": "High tide at 14:05."}

    assert count_messages([result | {"tool_call_id": "call_1"}], "gpt-4o") > count_messages([result], "gpt-4o")


def test_it_is_the_sum_over_compactions_units() -> None:
    units = counted(
        parse(CHAT, media_tokens=lambda message: media_tokens(message, "llama-3")).units, counter_for("llama-3")
    )

    assert count_messages(CHAT, "llama-3", [TOOL]) == total(units) + overhead_tokens("llama-3", [TOOL])


def test_base64_is_never_counted_as_text() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/webp;base64," + "UklGR" * 100_000}}

    assert count_messages([{"role": "user", "content": [picture]}], "phi-4") < 1500


def test_a_schema_is_shown_as_each_family_is_shown_it() -> None:
    gpt, llama, other = (overhead_tokens(model, [TOOL]) for model in ("gpt-4o", "llama-3", "phi-4"))

    assert gpt < other < llama


@pytest.mark.parametrize("tool", [{}, {"function": None}, {"function": {"parameters": []}}, {"name": "bare"}])
def test_an_odd_schema_is_counted_as_it_is(tool: dict[str, Any]) -> None:
    assert all(overhead_tokens(model, [tool]) > 3 for model in ("gpt-4o", "llama-3", "phi-4"))
