"""The development set: the same every time, valid, and needing what it really holds."""

from __future__ import annotations

import pytest

from benchmarks.devset import KINDS, cases
from benchmarks.devsets.case import Case
from benchmarks.scoring import broken_pairs, scored, tokens

SMALL = 9_000
EVERY_WRITER = [(kind, number) for kind, writers in KINDS.items() for number in range(len(writers))]


def written(kind: str, number: int, seed: int = 5) -> Case:
    return KINDS[kind][number](f"{kind}-{seed}-{number}", SMALL)


@pytest.fixture(scope="module", params=EVERY_WRITER, ids=lambda who: f"{who[0]}-{who[1]}")
def case(request: pytest.FixtureRequest) -> Case:
    return written(*request.param)


def test_the_same_seed_writes_the_same_case(case: Case) -> None:
    kind, seed, number = case.id.split("-")
    assert written(kind, int(number), int(seed)).as_json() == case.as_json()


def test_another_seed_writes_another_case(case: Case) -> None:
    kind, _, number = case.id.split("-")
    assert written(kind, int(number), seed=6).messages != case.messages


def test_all_that_is_needed_stands_in_an_untouched_conversation(case: Case) -> None:
    result = scored(case, case.messages, limit=tokens(case.messages), seconds=0)
    assert result.kept == 1


def test_something_is_needed_and_something_is_asked(case: Case) -> None:
    assert len(case.needed) >= 4
    assert any(item.asked for item in case.needed)


def test_every_call_is_answered(case: Case) -> None:
    assert broken_pairs(case.messages) == 0


def test_the_task_does_not_hold_the_answers(case: Case) -> None:
    assert case.task
    assert not [part for item in case.needed for part in item.parts if part.text in case.task]


def test_a_case_reads_back_as_it_was_written(case: Case) -> None:
    assert Case.from_json(case.as_json()) == case


def test_no_template_is_left_unfilled(case: Case) -> None:
    texts = [str(message["content"]) for message in case.messages if message["role"] in ("user", "assistant")]
    assert not [text for text in texts for mark in ("«", "»", "{A}", "{name}") if mark in text]


def test_some_of_what_a_chat_tells_is_changed_later() -> None:
    chats = list(cases("chat", 1, 4, chars=30_000))
    assert all(any("newest" in item.why for item in chat.needed) for chat in chats)
