"""No conversation overflows, whatever a client does: many rounds of tools, pictures, several at once, summaries of its
own, a prompt with the time in it, answers asked for that are too long.

The server lists its window of 8,192 tokens; nothing is configured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.overflow.conftest import Build
from tests.overflow.house import WAYS, House, hold, long_answers
from tests.overflow.pictures import shown
from tests.overflow.talk import RULES, SYSTEM, Talk, missing, prose, task
from tests.standins.compatible import CHARS_PER_TOKEN, IMAGE_TOKENS, Reply, answer_to, text_of

WINDOW = 8_192
LISTED = {"window": WINDOW, **WAYS["lists it"]}
TASK = task("Halvar")
PROMISED = (SYSTEM, TASK, *RULES.values())


def assert_untroubled(home: House) -> None:
    """The server had nothing to refuse, for whatever reason."""
    assert home.standin.invalid == []
    assert [one.why for one in home.standin.refusals] == []


# --- Tools ---------------------------------------------------------------------------------------
ROUNDS, LOG_CHARS = (30, 100), 80_000
READ_LOG = {
    "type": "function",
    "function": {
        "name": "read_log",
        "description": "Reads one page of the harbour log.",
        "parameters": {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]},
    },
}


def next_page(body: Mapping[str, Any]) -> Reply:
    """The model reads page after page, to the last one."""
    last = body["messages"][-1]
    read = text_of(last) if last["role"] == "tool" else "Page 0 of 1."
    _page, number, _of, last_number = read.split(".")[0].split()
    if int(number) < int(last_number):
        return Reply(calls=[("read_log", {"page": int(number) + 1})])
    return Reply(text="I have read the whole log.")


@pytest.mark.parametrize("rounds", [ROUNDS[0], pytest.param(ROUNDS[1], marks=pytest.mark.long)])
def test_one_message_with_many_tool_rounds_is_answered(build: Build, rounds: int) -> None:
    home = build(**LISTED, reply=next_page)
    caller = home.caller(tools=[READ_LOG])
    caller.messages.append({"role": "user", "content": " ".join([TASK, *RULES.values(), "Read the whole log first."])})

    while calls := (said := caller.completed()).tool_calls:
        caller.messages.append(said.model_dump(exclude_none=True))
        for call in calls:
            page = json.loads(call.function.arguments)["page"]
            result = f"Page {page} of {rounds}. {prose(page, LOG_CHARS // rounds)}"
            caller.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    assert said.content == "I have read the whole log."
    assert_untroubled(home)
    assert [gone for one in home.standin.seen if (gone := missing(one, PROMISED))] == []
    last = [text_of(one.body["messages"][-1]) for one in home.standin.seen[1:]]
    assert [text[:20] for text in last if not text.startswith("Page ")] == []
    assert home.dialogs() == 1


def test_a_result_that_does_not_fit_is_shortened_rather_than_refused(build: Build) -> None:
    home = build(**LISTED)
    caller = home.caller(tools=[READ_LOG])
    call = {"id": "c1", "type": "function", "function": {"name": "read_log", "arguments": '{"page": 1}'}}
    caller.messages += [
        {"role": "user", "content": TASK},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": prose(1, WINDOW * 5)},
    ]

    assert caller.answer()
    assert_untroubled(home)
    assert missing(home.last, (SYSTEM, TASK)) == []


# --- Pictures ------------------------------------------------------------------------------------
def test_a_chat_with_many_pictures_is_answered(build: Build) -> None:
    talk = Talk(WINDOW, turns=24, windows=1.0)
    home = build(**LISTED, reply=long_answers(talk.chars))
    caller = home.caller()

    for number in range(1, talk.turns + 1):
        assert caller.say(talk.turn(number) if number % 6 == 1 else shown(talk.turn(number), number))

    assert talk.turns * 5 // 6 * IMAGE_TOKENS > 1.5 * WINDOW
    assert_untroubled(home)
    assert missing(home.last, (SYSTEM, *talk.promised)) == []
    assert any(part["type"] == "image_url" for part in home.last.body["messages"][-1]["content"])


# --- Several conversations -----------------------------------------------------------------------
def test_three_conversations_at_once_do_not_mix(build: Build) -> None:
    talks = [Talk(WINDOW, turns=18, windows=2.0, ship=ship) for ship in ("Halvar", "Ingrid", "Sigrun")]
    home = build(**LISTED, reply=long_answers(talks[0].chars))

    with ThreadPoolExecutor(len(talks)) as threads:
        answers = list(threads.map(lambda talk: hold(home.caller(), talk), talks))

    assert all(all(said) for said in answers)
    assert_untroubled(home)
    assert home.dialogs() == len(talks)
    for talk in talks:
        own = [one for one in home.standin.seen if f"ferry {talk.ship}" in one.text]
        assert len(own) >= talk.turns
        assert missing(own[-1], (SYSTEM, *talk.promised)) == []
        assert not [one for one in own for other in talks if other is not talk and f"ferry {other.ship}" in one.text]


def test_a_conversation_that_outgrows_its_window_between_two_requests_is_answered(build: Build) -> None:
    home = build(**LISTED)
    caller = home.caller()
    caller.say(TASK)
    newest = f"What do you make of this? {prose(2, WINDOW * 2)}"

    caller.messages += [{"role": "user", "content": prose(1, WINDOW * 2)}, {"role": "assistant", "content": "Noted."}]

    assert caller.say(newest)
    assert_untroubled(home)
    assert missing(home.last, (SYSTEM, TASK, newest)) == []


@pytest.mark.parametrize("size", [0.6, 0.75])
@pytest.mark.parametrize("way", ["names it in a refusal", "names nothing"])
def test_a_long_message_after_a_history_fits_once_that_is_compacted(build: Build, way: str, size: float) -> None:
    """What was guessed of a window that nobody names, half of what was refused, is less than the message alone."""
    home = build(window=WINDOW, **WAYS[way])
    caller = home.caller()
    for number in range(1, 11):
        caller.say(f"Note {number}. {prose(number, 1_000)}")
    newest = f"What do you make of this? {prose(2, int(size * WINDOW * CHARS_PER_TOKEN))}"

    assert caller.say(newest)
    assert len(home.standin.refusals) == 1
    assert missing(home.last, (SYSTEM, newest)) == []


# --- Clients that change what they sent ----------------------------------------------------------
SUMMARISE = "Summarise our conversation so far, so that you can go on from your summary alone."
KEPT_EVERY = 8


def faithful_summary(body: Mapping[str, Any]) -> Reply:
    """A summary says what the model has read of what matters; anything else gets its answer."""
    read = "\n".join(map(text_of, body["messages"]))
    asked = text_of(body["messages"][-1])
    if asked != SUMMARISE:
        return Reply(text=answer_to(asked, sentences=6))
    return Reply(text=" ".join(["So far:", *(text for text in (TASK, *RULES.values()) if text in read), prose(7, 600)]))


def test_a_client_that_compacts_itself_keeps_its_task(build: Build) -> None:
    talk = Talk(WINDOW, turns=32, windows=4.0)
    home = build(**LISTED, reply=faithful_summary)
    caller = home.caller()

    for number in range(1, talk.turns + 1):
        assert caller.say(talk.turn(number))
        if number % KEPT_EVERY == 0:
            summary = caller.say(SUMMARISE)
            caller.messages[1:] = [
                {"role": "user", "content": f"This is the summary of our conversation so far:\n{summary}"},
                {"role": "assistant", "content": "Thank you, I go on from there."},
            ]

    assert_untroubled(home)
    assert missing(home.last, PROMISED) == []


def test_a_system_prompt_with_the_time_in_it_makes_no_new_dialog(build: Build) -> None:
    talk = Talk(WINDOW, turns=30, windows=2.2)
    home = build(**LISTED, reply=long_answers(talk.chars))
    caller = home.caller()

    for number in range(1, talk.turns + 1):
        now = f"{SYSTEM} It is 14:{number:02} on Tuesday."
        caller.messages[0] = {"role": "system", "content": now}
        assert caller.say(talk.turn(number))
        assert now in home.last.text

    assert_untroubled(home)
    assert home.dialogs() == 1
    assert missing(home.last, talk.promised) == []


# --- What compaction, or a shorter answer, can cure ----------------------------------------------
@pytest.mark.parametrize("most", [WINDOW, 2 * WINDOW, 100_000])
def test_an_answer_asked_for_that_is_longer_than_the_window_is_shortened(build: Build, most: int) -> None:
    home = build(**LISTED, counts_answer=True)

    assert home.caller(max_tokens=most).say("hi")
    assert_untroubled(home)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.85])
def test_a_first_request_with_its_answer_is_refused_by_nobody(build: Build, share: float) -> None:
    """Nobody knows yet how this model counts."""
    home = build(**LISTED, counts_answer=True)
    caller = home.caller(max_tokens=WINDOW // 2)

    assert caller.say(prose(1, int(share * WINDOW * CHARS_PER_TOKEN)))
    assert_untroubled(home)


def test_a_first_message_is_refused_by_nobody_for_what_another_model_would_take_for_it(build: Build) -> None:
    """Digits cost some vocabularies three times what they cost others; nobody knows yet how this model counts."""
    home = build(**LISTED)
    lines = (f"{n:02d}:{n % 60:02d} sensor {n % 17} reads {n * 7919 % 100_003}" for n in range(1_000))
    text = "\n".join(lines)[: int(0.6 * WINDOW * CHARS_PER_TOKEN)]

    assert home.caller().say(f"What is the highest reading?\n{text}")
    assert_untroubled(home)
    assert text in text_of(home.standin.seen[0].body["messages"][-1])


@pytest.mark.parametrize("windows", [1.5, 2, 7])
def test_a_chore_of_the_client_is_fitted_into_the_window_and_leaves_no_dialog(build: Build, windows: float) -> None:
    home = build(**LISTED, counts_answer=True)
    caller = home.caller(extra_headers={"X-Dominds-Task": "title"}, max_tokens=WINDOW // 2)
    caller.messages += _a_history(int(windows * WINDOW))

    assert caller.say("### Task:\nWrite a title of three to five words for this chat.")
    assert_untroubled(home)
    assert home.dialogs() == 0


@pytest.mark.parametrize("chore", ["title", "summary"])
def test_a_chore_that_fills_its_room_is_refused_by_nobody(build: Build, chore: str) -> None:
    """Nobody knows yet how this model counts: of prose it takes more tokens than the margin allows for."""
    home = build(**LISTED, counts_answer=True)
    caller = home.caller(extra_headers={"X-Dominds-Task": chore}, max_tokens=WINDOW // 2)
    whole = prose(1, int(2 * WINDOW * CHARS_PER_TOKEN))

    assert caller.say(whole)
    assert_untroubled(home)
    assert home.last.size > WINDOW / 2


def _a_history(chars: int) -> list[dict[str, Any]]:
    each = [prose(number, 1_000) for number in range(chars // 1_000)]
    return [
        {"role": "user" if at % 2 == 0 else "assistant", "content": text} for at, text in enumerate([*each, "Yes."])
    ]
