"""What is remembered of a client's growing history: only its end is made anew, and it is never another's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dialogs.api import canonical
from dialogs.api.canonical import chained
from dialogs.api.recent import Recent

HISTORY: list[dict[str, Any]] = [
    {"role": "assistant" if at % 2 else "user", "content": f"Message {at}."} for at in range(8)
]


def made(recent: Recent, messages: list[dict[str, Any]], root: str = "alice", size: int = 100) -> tuple[Any, ...]:
    return recent.chained(messages, root=root, size=size)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the messages that were made anew."""
    seen: list[str] = []
    real = canonical._beside

    def noting(message: Mapping[str, Any]) -> dict[str, Any]:
        seen.append(message["content"])
        return real(message)

    monkeypatch.setattr(canonical, "_beside", noting)
    return seen


def test_of_a_history_that_grew_only_its_end_is_made_anew(read: list[str]) -> None:
    recent = Recent()
    made(recent, HISTORY[:6])
    read.clear()

    made(recent, HISTORY)

    assert read == ["Message 0.", "Message 1.", "Message 2.", "Message 6.", "Message 7."]


@pytest.mark.parametrize("root", ["alice", "bob"])
def test_it_says_what_a_history_that_is_read_whole_says(root: str) -> None:
    recent = Recent()
    edited = [*HISTORY[:5], {"role": "assistant", "content": "Something else."}, *HISTORY[6:]]
    for messages in (HISTORY[:4], HISTORY, edited, HISTORY[:2], HISTORY[:7]):
        made(recent, messages)

        assert made(recent, messages, root) == tuple(chained(messages, root=root))


def test_the_same_words_written_in_another_way_are_made_anew() -> None:
    recent = Recent()
    made(recent, HISTORY)
    first: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Message 0."}]}
    in_parts = [first, *HISTORY[1:]]

    assert made(recent, in_parts) == tuple(chained(in_parts, root="alice"))


def test_what_was_asked_last_stays_and_the_oldest_is_forgotten(read: list[str]) -> None:
    recent = Recent(most_bytes=250)
    other = [{"role": "user", "content": "Another."}, *HISTORY[1:]]
    for messages, root in ((HISTORY, "alice"), (other, "alice"), (HISTORY, "alice"), (HISTORY, "bob")):
        made(recent, messages, root)

    for messages, count in ((HISTORY, 3), (other, len(other))):
        read.clear()
        made(recent, messages)
        assert len(read) == count


def test_a_request_that_is_larger_than_all_that_may_be_remembered_is_not_remembered(read: list[str]) -> None:
    recent = Recent(most_bytes=50)
    made(recent, HISTORY)
    read.clear()

    made(recent, HISTORY)

    assert len(read) == len(HISTORY)
