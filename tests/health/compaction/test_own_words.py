"""Who wrote a message is said by its `dominds` field, never by its words."""

from __future__ import annotations

from typing import Any

import pytest

from health.compaction.reading.messages import MARKS, parse, sendable
from health.compaction.terms.units import WRITTEN, Kind
from health.services import compact_messages
from tests.dialogs.driver.test_own_words import BEGINNINGS, RULE

CHAINS = (None, ["keep_last_five"], ["select_passages"], ["truncate"], ["discard_low_rel", "summarize_old", "truncate"])


def a_chat(pairs: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "role": role,
            "content": f"{role} {n}: the pump {n} beside valve {n * 7} shows {n * 37 % 991} after the check.",
        }
        for n in range(pairs)
        for role in ("user", "assistant")
    ]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("chain", CHAINS, ids=str)
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_first_and_last_words_and_a_rule_below_stay_whatever_they_begin_with(
    beginning: str, chain: list[str] | None
) -> None:
    first, last = f"{beginning}\nBooking code ZEBRA-77.", f"{beginning}\nWhat about ZEBRA-9?"
    ruled = f"{beginning}\n{RULE}"
    bare = {"role": "assistant", "content": "Yes."}
    messages = [user(first), bare, user(ruled), bare, *a_chat(), user(last)]

    outcome = compact_messages(messages, limit_tokens=1200, chain=chain, embedder="none")

    assert outcome.status == "applied", outcome.reason
    said = [message["content"] for message in outcome.messages]
    assert first in said
    assert said[-1] == last
    assert RULE in "\n".join(said)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_what_compaction_wrote_is_marked_and_known_again(chain: list[str] | None) -> None:
    messages = [user(f"{RULE} Go on."), *a_chat()]

    once = compact_messages(messages, limit_tokens=1200, chain=chain, embedder="none")
    twice = compact_messages([*once.messages, *a_chat(30)], limit_tokens=1200, chain=chain, embedder="none")

    written = [unit for unit in once.state.units if unit.kind in WRITTEN]
    assert [message[MARKS] for message in once.messages if MARKS in message] == [
        {"written": unit.kind.value} for unit in written
    ]
    assert [unit.kind for unit in parse(once.messages).units if unit.kind in WRITTEN] == [u.kind for u in written]
    ledgers = [m for m in twice.messages if str(m["content"]).startswith("[Ledger of earlier messages")]
    assert len(ledgers) <= 1


def test_no_provider_is_sent_the_mark() -> None:
    outcome = compact_messages(a_chat(), limit_tokens=600, chain=["keep_last_five"], embedder="none")

    assert any(MARKS in message for message in outcome.messages)
    assert all(message.keys() == {"role", "content"} for message in sendable(outcome.messages))


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_only_a_users_message_can_be_marked_as_written(role: str) -> None:
    message = {"role": role, "content": "Hi.", "tool_call_id": "c", MARKS: {"written": "summary"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    before = [{"role": "assistant", "content": None, "tool_calls": [call]}] if role == "tool" else []

    assert parse([*before, message]).units[-1].kind not in WRITTEN


@pytest.mark.parametrize("mark", ["summary", "placeholder"])
def test_a_mark_says_what_was_written(mark: str) -> None:
    assert parse([{**user("Hi."), MARKS: {"written": mark}}]).units[0].kind == mark


@pytest.mark.parametrize("mark", ["message", "code", "nonsense", 7, None, []])
def test_any_other_mark_says_nothing(mark: object) -> None:
    assert parse([{**user("Hi."), MARKS: {"written": mark}}]).units[0].kind is Kind.MESSAGE


def test_a_result_without_its_call_is_no_word_of_the_users_however_often_it_is_compacted() -> None:
    stray = {"role": "tool", "tool_call_id": "gone", "content": "42"}

    once = compact_messages([user("Hi."), stray], limit_tokens=1200)
    twice = parse(once.messages)

    assert [unit.inserted for unit in twice.units] == [False, True]
