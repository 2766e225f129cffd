"""What is remembered of a client's growing history: only its end is made anew, and it is never another's."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest

from dialogs.api import canonical
from dialogs.api import reading as recent_module
from dialogs.api.canonical import chained
from dialogs.api.errors import ApiError
from dialogs.api.reading import EACH, BodyCache, PrefixHashCache
from dialogs.api.schemas import MAX_MESSAGES, ChatBody, checked, in_range, read_json

HISTORY: list[dict[str, Any]] = [
    {"role": "assistant" if at % 2 else "user", "content": f"Message {at}."} for at in range(8)
]


# Of all that is held of it.
SIZE = 100 + EACH * len(HISTORY)


def made(
    recent: PrefixHashCache, messages: list[dict[str, Any]], root: str = "alice", size: int = 100
) -> tuple[Any, ...]:
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
    recent = PrefixHashCache()
    made(recent, HISTORY[:6])
    read.clear()

    made(recent, HISTORY)

    assert read == ["Message 6.", "Message 7."]


@pytest.mark.parametrize("root", ["alice", "bob"])
def test_it_says_what_a_history_that_is_read_whole_says(root: str) -> None:
    recent = PrefixHashCache()
    edited = [*HISTORY[:5], {"role": "assistant", "content": "Something else."}, *HISTORY[6:]]
    for messages in (HISTORY[:4], HISTORY, edited, HISTORY[:2], HISTORY[:7]):
        made(recent, messages)

        assert made(recent, messages, root) == tuple(chained(messages, root=root))


def test_the_same_words_written_in_another_way_are_made_anew() -> None:
    recent = PrefixHashCache()
    made(recent, HISTORY)
    first: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Message 0."}]}
    in_parts = [first, *HISTORY[1:]]

    assert made(recent, in_parts) == tuple(chained(in_parts, root="alice"))


def test_what_was_asked_last_stays_and_the_oldest_is_forgotten(read: list[str]) -> None:
    recent = PrefixHashCache(most_bytes=5 * SIZE // 2)
    other = [{"role": "user", "content": "Another."}, *HISTORY[1:]]
    for messages, root in ((HISTORY, "alice"), (other, "alice"), (HISTORY, "alice"), (HISTORY, "bob")):
        made(recent, messages, root)

    for messages, count in ((HISTORY, 0), (other, len(other))):
        read.clear()
        made(recent, messages)
        assert len(read) == count


def test_a_request_that_is_larger_than_all_that_may_be_remembered_is_not_remembered(read: list[str]) -> None:
    recent = PrefixHashCache(most_bytes=SIZE // 2)
    made(recent, HISTORY)
    read.clear()

    made(recent, HISTORY)

    assert len(read) == len(HISTORY)


def a_tool_call(number: int) -> dict[str, Any]:
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "read", "arguments": f'{{"at": {number}}}'},
    }
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def a_word(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"Ok {number}"}


@pytest.mark.parametrize("message", [a_word, a_tool_call])
def test_what_is_remembered_takes_no_more_than_it_may_however_short_the_messages_are(message: Any) -> None:
    most = 250_000
    known, recent = BodyCache(most), PrefixHashCache(most)
    gc.collect()
    tracemalloc.start()
    before, _peak = tracemalloc.get_traced_memory()

    for conversation in range(15):
        raw = body_of([a_word(conversation), *(message(1_000 * conversation + at) for at in range(100))])
        _body, messages = known.read(raw, root="alice")
        recent.chained(messages, root="alice", size=len(raw))
        del raw, _body, messages

    gc.collect()
    held, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Each of the two has so much.
    assert most / 4 < held - before < 3 * most


# --- Checked bodies ------------------------------------------------------------------------------
def body_of(messages: list[Any], **more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The messages that were written down anew, each after its check."""
    seen: list[Any] = []
    real = recent_module._plain
    monkeypatch.setattr(recent_module, "_plain", lambda message: (seen.append(message.content), real(message))[1])
    return seen


@pytest.mark.parametrize("length", [10, 1_000])
def test_of_a_history_that_grew_only_its_end_is_checked_anew_however_long_it_is(checks: list[Any], length: int) -> None:
    known = BodyCache()
    history = [{"role": "assistant" if at % 2 else "user", "content": f"Message {at}."} for at in range(length)]
    system = [{"role": "system", "content": "It is 10:00."}]
    known.read(body_of([*system, *history[:-2]]), root="alice")
    checks.clear()

    # The system prompt has the time in it.
    system = [{"role": "system", "content": "It is 10:01."}]
    body, messages = known.read(body_of([*system, *history]), root="alice")

    assert sorted(checks) == sorted(["It is 10:01.", *(one["content"] for one in history[-2:])])
    assert messages == (*system, *history)
    assert [one.content for one in body.messages] == [one["content"] for one in messages]


def read_whole(raw: bytes) -> ChatBody:
    """With nothing known of it."""
    return checked(in_range(read_json(raw)))


def test_a_checked_body_says_what_one_that_is_read_whole_says() -> None:
    known = BodyCache()
    edited = [*HISTORY[:5], {"role": "assistant", "content": "Something else.", "name": None}, *HISTORY[6:]]
    for messages in (HISTORY[:4], HISTORY, edited, HISTORY[:2], HISTORY[:7]):
        known.read(body_of(messages), root="alice")

        body, written = known.read(body_of(messages, temperature=0.5), root="alice")

        whole = read_whole(body_of(messages, temperature=0.5))
        assert body == whole
        assert written == tuple(one.model_dump(exclude_none=True) for one in whole.messages)


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ({"role": "tool", "content": "x"}, "messages[8]"),
        ({"role": ["user"], "content": "x"}, "messages[8].role"),
        (7, "messages[8]"),
        ({"role": "user", "content": "x", "odd": float("inf")}, None),
    ],
)
def test_what_is_wrong_behind_a_known_history_is_told_with_its_place(bad: Any, place: str) -> None:
    known = BodyCache()
    known.read(body_of(HISTORY), root="alice")

    with pytest.raises(ApiError) as refused:
        known.read(body_of([*HISTORY, bad]), root="alice")

    assert refused.value.as_json()["error"]["param"] == place


def test_a_history_that_has_become_too_long_is_refused_though_it_is_known() -> None:
    known = BodyCache()
    known.read(body_of(HISTORY), root="alice")
    too_long = [*HISTORY, *({"role": "user", "content": "More."} for _each in range(MAX_MESSAGES))]

    with pytest.raises(ApiError) as refused:
        known.read(body_of(too_long), root="alice")

    assert refused.value.as_json()["error"]["param"] == "messages"


def test_a_message_that_says_nothing_may_stand_behind_a_known_history() -> None:
    known = BodyCache()
    known.read(body_of(HISTORY), root="alice")

    body, _messages = known.read(body_of([*HISTORY, {"role": "user", "content": ""}]), root="alice")

    assert len(body.messages) == len(HISTORY) + 1


@pytest.mark.parametrize(
    "raw", [b"[]", b'{"model": "m"}', b'{"model": "m", "messages": 3}', b'{"messages": [[]]}', b"{"]
)
def test_what_is_no_history_at_all_is_refused_as_ever(raw: bytes) -> None:
    with pytest.raises(ApiError) as expected:
        read_whole(raw)

    with pytest.raises(ApiError) as refused:
        BodyCache().read(raw, root="alice")

    assert refused.value.as_json() == expected.value.as_json()
