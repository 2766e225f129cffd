"""A message is read once, however often the conversation that it is in is compacted: nothing comes out otherwise."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from health.compaction.reading import features, text, value_statements
from health.compaction.reading.messages import parse
from health.compaction.reading.text import Looked, Looks, of_text
from health.compaction.reading.values import Said, heard
from health.compaction.terms.outcome import CompactionOutcome
from health.compaction.terms.units import Role
from health.compaction.trimming import payloads
from health.services import compact_messages
from tests.health.compaction.histories import histories
from tests.health.test_compacting_properties import as_messages
from tests.overflow.talk import SYSTEM, Talk, prose

Message = dict[str, Any]
Messages = list[Message]
TURNS = 40


class Listing(Looks):
    """Lists what it did not know."""

    def __init__(self) -> None:
        super().__init__(text.GENERATION)
        self.unknown: list[str] = []

    def new(self, key: Hashable, chars: int) -> Looked:
        self.unknown.append(str(key))
        return super().new(key, chars)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Listing:
    listing = Listing()
    monkeypatch.setattr(text, "LOOKS", listing)
    return listing


def a_talk(turns: int) -> Messages:
    talk = Talk(window=8_000)
    said: Messages = [{"role": "system", "content": SYSTEM}]
    for number in range(1, turns + 1):
        said.append({"role": "user", "content": talk.turn(number)})
        said.append({"role": "assistant", "content": f"Noted as {number}. {prose(9_000 + number, talk.chars)}"})
    return said


def compacted(messages: Messages, *, limit_tokens: int = 2_000) -> CompactionOutcome:
    return compact_messages(messages, limit_tokens=limit_tokens, embedder="none")


def account(outcome: CompactionOutcome) -> tuple[Any, ...]:
    return outcome.status, outcome.messages, [*outcome.ledger], [*outcome.losses], outcome.coverage, outcome.removed_ids


def engine() -> list[ModuleType]:
    return [found for name, found in sys.modules.items() if name.startswith("health.compaction.")]


@contextmanager
def nothing_remembered() -> Iterator[None]:
    """As in a process that has just begun: all that the engine remembers of texts, sentences and states is gone."""
    for module in engine():
        for one in vars(module).values():
            if hasattr(one, "cache_clear"):
                one.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "LOOKS", Looks(text.GENERATION))
        patch.setattr(features, "_names", features.Names())
        yield


def told_in(texts: Iterable[str], messages: Messages) -> list[str]:
    return [one for one in texts if any(one in message["content"] or message["content"] in one for message in messages)]


def test_of_a_conversation_that_grew_by_one_message_only_that_is_read(looks: Listing) -> None:
    messages = a_talk(TURNS)
    compacted(messages[:-1])
    at_first = len(told_in(looks.unknown, messages))
    looks.unknown.clear()

    compacted(messages)

    assert messages[-1]["content"] in looks.unknown
    assert told_in(looks.unknown, messages[:-1]) == []
    assert len(looks.unknown) < at_first / 10


def test_of_the_same_conversation_nothing_is_read_again(looks: Listing) -> None:
    compacted(a_talk(TURNS))
    looks.unknown.clear()

    compacted(a_talk(TURNS))

    assert looks.unknown == []


def test_a_payload_is_trimmed_once_whatever_else_was_spoken_of_since(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[str] = []
    monkeypatch.setattr(payloads, "looks_like_log", lambda content: trimmed.append(content) or False)
    result = "\n".join(f"Shelf {number} holds crate-{number}." for number in range(200))
    function = {"name": "shelves", "arguments": "{}"}
    call = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    messages = [{"role": "user", "content": "Look."}, call, {"role": "tool", "tool_call_id": "c1", "content": result}]
    messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Also look at rack-9."}]

    compacted(messages, limit_tokens=600)
    compacted([*messages, {"role": "user", "content": "And at rack-10."}], limit_tokens=600)

    assert trimmed == [result]


def test_also_of_a_conversation_of_which_the_oldest_messages_are_not_heard_only_the_new_one_is_looked_at() -> None:
    said = [Said(Role.USER, f"The price of crate {number} is {number + 40} crowns.") for number in range(520)]
    heard(said[:-1])
    known = value_statements._stated.cache_info().misses

    heard(said)

    assert value_statements._stated.cache_info().misses - known == 1


@given(histories().map(as_messages), st.integers(1, 4), st.integers(100, 1_500))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_conversation_that_was_read_before_comes_out_as_one_that_was_not(
    messages: Messages, fewer: int, limit_tokens: int
) -> None:
    compacted(messages[:-fewer], limit_tokens=limit_tokens)
    known = account(compacted(messages, limit_tokens=limit_tokens))

    with nothing_remembered():
        unknown = account(compacted(messages, limit_tokens=limit_tokens))

    assert known == unknown


@given(histories().map(as_messages), st.integers(100, 1_500))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_conversation_that_was_compacted_after_each_message_comes_out_as_one_that_never_was(
    messages: Messages, limit_tokens: int
) -> None:
    known = [account(compacted(messages[:end], limit_tokens=limit_tokens)) for end in range(len(messages) + 1)]

    with nothing_remembered():
        unknown = account(compacted(messages, limit_tokens=limit_tokens))

    assert known[-1] == unknown


@pytest.mark.parametrize("other", [{"content": "Two."}, {"dominds": {"pinned": 1}}, {"id": "x"}, {"dominds": {}}])
def test_a_message_with_another_mark_is_another_message(other: Message) -> None:
    one = {"role": "user", "content": "One.", "dominds": {"pinned": True}}

    (first,), (second,) = parse([one]).units, parse([one | other]).units

    assert first.pinned
    assert first != second
    assert parse([one]).units == (first,)


def test_a_text_is_kept_with_what_else_the_look_depends_on() -> None:
    @of_text
    def repeated(said: str, times: int = 1) -> str:
        return said * times

    assert [repeated("la"), repeated("la", 2), repeated("la", 3), repeated("lo")] == ["la", "lala", "lalala", "lo"]


def test_it_forgets_what_was_not_asked_for_and_stays_bounded() -> None:
    looks = Looks(100 * (10 + text.EACH))
    looks.at("always    ")["seen"] = True

    for number in range(1_000):
        looks.at(f"text {number:5}")["seen"] = True
        assert looks.at("always    ") == {"seen": True}
        assert len(looks) <= 202

    assert looks.at("text     0") == {}
    assert looks.at("text   999") == {"seen": True}


def test_a_text_that_would_push_out_all_others_is_not_kept() -> None:
    looks = Looks(8_000)
    looks.at("x" * 1_001)["seen"] = True

    assert looks.at("x" * 1_001) == {}
    assert len(looks) == 0


def test_what_is_remembered_of_sentences_is_bounded_by_the_texts_they_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LOOKS", Looks(30_000))
    held = []
    for ship in range(40):
        prices = [f"Ship {ship}: the price of crate {at} is {at + ship} crowns." for at in range(60)]
        compacted([{"role": "user", "content": price} for price in prices], limit_tokens=300)
        held.append(sum(one.cache_info().currsize for one in text.REMEMBERED))

    assert max(held[20:]) < 1.2 * max(held[:20])


def test_every_large_memory_of_the_engine_is_emptied_with_the_texts() -> None:
    found = [one for module in engine() for one in vars(module).values() if hasattr(one, "cache_parameters")]
    large = {one.__qualname__ for one in found if (one.cache_parameters()["maxsize"] or 0) > 256}

    assert large <= {one.__qualname__ for one in text.REMEMBERED}
    assert len(large) > 10
