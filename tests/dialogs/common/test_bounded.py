"""What a process keeps at hand is bounded in bytes, and what nobody asked for lately is let go."""

from __future__ import annotations

import pytest

from dialogs.common import bounded
from dialogs.common.bounded import IDLE_SECONDS, BoundedCache


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(bounded, "monotonic", lambda: now[0])
    return now


def kept(store: BoundedCache[str, int], keys: str) -> str:
    return "".join(key for key in keys if store.get(key) is not None)


def test_more_bytes_than_it_may_have_push_out_what_was_kept_longest_ago() -> None:
    store: BoundedCache[str, int] = BoundedCache(100)
    for key in "abacd":
        store.keep(key, 1, size=30)

    assert kept(store, "abcd") == "acd"


def test_what_is_larger_than_all_it_may_have_is_not_kept() -> None:
    store: BoundedCache[str, int] = BoundedCache(100)
    for size in (101, 50, 101):
        store.keep("a", 1, size=size)

    assert kept(store, "a") == ""
    store.keep("b", 1, size=100)
    assert kept(store, "b") == "b"


def test_what_was_not_kept_anew_for_so_long_is_let_go(clock: list[float]) -> None:
    store: BoundedCache[str, int] = BoundedCache(100)
    for key in "ab":
        store.keep(key, 1, size=1)
    clock[0] = IDLE_SECONDS
    store.keep("b", 1, size=1)
    assert kept(store, "ab") == "ab"

    clock[0] += 1
    store.keep("c", 1, size=1)

    assert kept(store, "abc") == "bc"


def test_of_conversations_that_end_after_some_requests_no_more_are_held_after_hours(clock: list[float]) -> None:
    store: BoundedCache[int, int] = BoundedCache(10**9)
    held = []
    for minute in range(240):
        clock[0] = 60.0 * minute
        store.keep(minute // 3, minute, size=1_000)
        held.append(len(store._kept))

    assert max(held[60:]) == max(held[:60]) < 6
