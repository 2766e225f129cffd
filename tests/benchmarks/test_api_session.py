"""The session that outgrows its window, its server, and what the server says of what it saw."""

from __future__ import annotations

import pytest

from benchmarks.api_session import hold_all
from benchmarks.gateways import direct
from benchmarks.session import TURNS, asked, session
from benchmarks.small_window import SUMMARY_TOKENS, WINDOW, SmallWindow, summary_of

CASE = session(1)


def test_the_same_seed_writes_the_same_session_and_another_seed_another() -> None:
    assert session(1) == CASE
    assert session(2).messages != CASE.messages


def test_the_facts_stand_in_the_first_three_requests_only() -> None:
    later = "\n".join(message["content"] for message in CASE.messages[asked(4) :])
    assert {need.parts[0].at for need in CASE.needed} == {asked(turn) for turn in (1, 2, 3)}
    assert not any(need.parts[0].text in later for need in CASE.needed)


def test_no_two_requests_are_the_same() -> None:
    """The server knows by a request what to answer."""
    requests = [CASE.messages[asked(turn)]["content"] for turn in range(1, TURNS + 1)]
    assert len(set(requests)) == TURNS


def test_three_turns_are_answered_directly_with_all_that_was_told() -> None:
    (held,) = hold_all([session(1, turns=3)], direct)
    assert (held.answered, held.first_refused) == (3, 0)
    assert held.kept(3) == 1.0
    assert held.seen.rewrites == held.seen.summaries == 0


def test_a_whole_session_is_refused_from_some_turn_on() -> None:
    (held,) = hold_all([CASE], direct)
    assert 5 < held.answered < 25
    assert held.first_refused == held.answered + 1
    assert held.kept(TURNS) == 0.0


def test_what_is_longer_than_the_window_is_refused_in_words_that_are_known_as_an_overflow() -> None:
    from dialogs.providers.errors import OVERFLOW

    status, words = SmallWindow(CASE).answer(CASE.messages)
    assert status == 400
    assert OVERFLOW.search(words)
    assert f"({WINDOW} tokens)" in words


def test_a_request_is_found_where_it_was_joined_to_what_came_before() -> None:
    mind = SmallWindow(CASE)
    newest = CASE.messages[asked(9)]["content"]
    status, text = mind.answer([{"role": "user", "content": f"[3 messages left out]\n\n{newest}"}])
    assert (status, text) == (200, CASE.messages[asked(9) + 1]["content"])


def test_an_answer_that_was_cut_is_gone_on_with() -> None:
    request, answer = CASE.messages[asked(1) : asked(1) + 2]
    begun = {"role": "assistant", "content": answer["content"][:10]}
    goes_on = {"role": "user", "content": "Go on where you were cut off."}
    assert SmallWindow(CASE).answer([request, begun, goes_on]) == (200, answer["content"][10:])


@pytest.fixture
def transcript() -> str:
    told = "\n\n".join(f"[{message['role']}]: {message['content']}" for message in CASE.messages[1:20])
    return (
        f"Summarise what stands between BEGIN_TRANSCRIPT and END_TRANSCRIPT.\nBEGIN_TRANSCRIPT\n{told}\nEND_TRANSCRIPT"
    )


def test_a_summary_keeps_what_was_stated_and_leaves_out_code(transcript: str) -> None:
    summary = summary_of(transcript)
    kept = sum(need.parts[0].text in summary for need in CASE.needed)
    assert kept >= 10
    assert len(summary) < len(transcript) / 4
    assert "```" not in summary
    assert "TRANSCRIPT" not in summary


def test_a_request_for_a_summary_is_counted_with_what_it_had_to_read(transcript: str) -> None:
    mind = SmallWindow(CASE)
    mind.answer([{"role": "user", "content": transcript}])
    assert (mind.seen.summaries, mind.seen.summary_chars) == (1, len(transcript))
    assert mind.seen.facts == {}
    assert SUMMARY_TOKENS < WINDOW
