"""A context is filled up to the goal also where nothing that is left says anything new, and never with repeats."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from health.compaction.config import ContextConfig, How
from health.services import compact_messages
from health.tokens.messages import count_messages

WHO = ("the pilot", "a clerk", "the harbour master", "an engineer", "the cook", "two deckhands")
DID = ("counted", "looked over", "moved", "painted", "weighed", "put away")
WHAT = ("the mooring lines", "nine crates of lamp oil", "the spare anchor", "the old charts", "the tide tables")
WHERE = ("behind the ice house", "on the north pier", "in the rope walk", "below the crane", "at the fish market")
WHY = ("as the wind had turned", "since nobody had done so", "while the mail boat came in", "so the yard is clear")
FACT = "The reserve boat lies at the Kvarn berth, number 47."


def prose(seed: int, sentences: int = 6) -> str:
    """Sentences of a few words, each another one, that soon say nothing which was not said before."""
    dice = random.Random(seed)
    parts = ([dice.choice(words) for words in (WHO, DID, WHAT, WHERE, WHY)] for _each in range(sentences))
    return " ".join(f"{who.capitalize()} {did} {what} {where}, {why}." for who, did, what, where, why in parts)


def talk(turns: int) -> list[dict[str, Any]]:
    said = [{"role": ("user", "assistant")[at % 2], "content": prose(at)} for at in range(2 * turns)]
    return [{"role": "user", "content": f"Let us write the log. {FACT}"}, *said, {"role": "user", "content": "Go on."}]


def rounds(count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for at in range(count):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "read_log", "arguments": f'{{"page": {at}}}'}}
        found += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        found += [{"role": "tool", "tool_call_id": f"c{at}", "content": f"Page {at}. {prose(at)}"}]
    return [{"role": "user", "content": f"Read the log. {FACT}"}, *found]


def text(messages: list[dict[str, Any]]) -> str:
    return "\n".join(one["content"] or "" for one in messages)


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("messages", [talk(40), rounds(60)], ids=["talk", "tools"])
def test_a_context_whose_words_repeat_is_filled_up_to_the_goal(messages: list[dict[str, Any]], how: How) -> None:
    config, limit = ContextConfig(), count_messages(messages, "") // 2

    outcome = compact_messages(messages, limit_tokens=limit, config=config, how=how, embedder="none")

    assert 0.8 * config.goal <= count_messages(outcome.messages, "") / limit <= config.accept


def test_a_growing_conversation_is_as_full_after_the_third_run_as_after_the_first() -> None:
    limit, config, stands, shares = 2_000, ContextConfig(), list[dict[str, Any]](), []
    for message in rounds(150):
        stands.append(message)
        if message["role"] == "tool" and count_messages(stands, "") > config.warning_threshold * limit:
            stands = compact_messages(stands, limit_tokens=limit, config=config, embedder="none").messages
            shares.append(count_messages(stands, "") / limit)

    assert len(shares) > 3, shares
    assert [share for share in shares if share < 0.8 * config.goal] == []
    assert FACT in text(stands)


def test_what_fills_the_room_is_the_newest() -> None:
    messages = rounds(60)

    outcome = compact_messages(messages, limit_tokens=count_messages(messages, "") // 2, embedder="none")

    newest = [one["content"] for one in messages[-20:] if one["content"]]
    assert len(newest) == 10
    assert [one for one in newest if one not in text(outcome.messages)] == []


def test_no_repeat_fills_the_room() -> None:
    again = [
        {"role": role, "content": f"{role}: the pilot painted the spare anchor."} for role in ("user", "assistant")
    ]
    messages = [*talk(1)[:1], *(40 * again), *talk(10)[-1:]]

    outcome = compact_messages(messages, limit_tokens=count_messages(messages, "") // 2, embedder="none")

    said = Counter(line for line in text(outcome.messages).splitlines() if "spare anchor" in line)
    assert set(said.values()) == {1}


def test_a_sentence_that_stands_already_does_not_fill_the_room() -> None:
    """Neither beside a message that must stay, nor beside another passage."""
    repeated = [f"{FACT} {prose(at, 2)}" for at in range(60)]
    messages = [*talk(1)[:1], *({"role": "user", "content": one} for one in repeated), *talk(1)[-1:]]

    outcome = compact_messages(messages, limit_tokens=count_messages(messages, "") // 2, embedder="none")

    assert text(outcome.messages).count(FACT) < len(repeated) / 4
