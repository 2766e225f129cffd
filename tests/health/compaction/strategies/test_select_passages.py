"""Choosing passages: what is needed most stays, verbatim, in its own message, within the limit."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from health.compaction.config import ContextConfig, SelectPassages
from health.compaction.coverage import receipts
from health.compaction.digest import GAP, HEADER, NOTICE
from health.compaction.invariants import broken
from health.compaction.ledger import extract
from health.compaction.outcome import Extent
from health.compaction.ports import Attempt, Embed, Embedded, Kit
from health.compaction.strategies.select_passages import select_passages
from health.compaction.units import ContextState, Kind, Role, Unit
from tests.health.compaction.builders import KIT, Listening, a_round, a_state, a_unit, ids, p1, pinned, play, texts

FULL = ContextConfig(warning_threshold=1.0, goal=1.0, accept=1.0, select_passages=SelectPassages(fill=1.0))
CHATTER = "Well, that is nice to hear. I was just thinking about it too. What a day it was! Anyway, let us go on."


def assistant(content: str, **fields: object) -> Unit:
    return a_unit(content, role=Role.ASSISTANT, **fields)


def small_talk(count: int) -> list[Unit]:
    return [a_unit(CHATTER) if at % 2 else assistant(CHATTER) for at in range(count)]


def a_long_chat(*told: Unit, limit: int = 150, config: ContextConfig = FULL, **fields: object) -> ContextState:
    """A system prompt, a first request, much small talk with `told` in the middle of it, a last question."""
    talk = small_talk(12)
    return a_state(
        a_unit("You are a helpful assistant.", id="system", role=Role.SYSTEM),
        a_unit("Hi, I would like to plan something.", id="first"),
        *talk[:6],
        *told,
        *talk[6:],
        a_unit("And what comes next?", id="last"),
        limit=limit,
        config=config,
        **fields,
    )


def chosen(state: ContextState, kit: Kit = KIT) -> Attempt:
    attempt = play(select_passages, state, kit=kit)
    assert attempt.changed, attempt.note
    return attempt


def test_a_context_that_fits_is_left_alone() -> None:
    state = a_state(a_unit("hello"), limit=100)

    attempt = play(select_passages, state)

    assert not attempt.changed
    assert attempt.state is state


def test_the_result_is_within_the_limit() -> None:
    state = a_long_chat(a_unit("Dinner is at Luigi's on Friday at 19:30."))

    attempt = chosen(state)

    assert attempt.state.estimated_tokens <= state.limit


def test_by_default_a_part_of_the_limit_is_left_free_for_what_comes() -> None:
    state = a_long_chat(config=ContextConfig(), limit=150)

    attempt = chosen(state)

    assert attempt.state.estimated_tokens <= 0.7 * 150


@pytest.mark.parametrize("limit", [90, 120, 180, 250])
def test_no_law_is_broken_at_any_limit(limit: int) -> None:
    state = a_long_chat(*a_round("Let me look.", "3 rows found, id A-17"), a_unit("Use A-17, please."), limit=limit)

    attempt = chosen(state)

    assert broken(state.units, attempt.state.units) == []


def test_a_fact_stays_where_small_talk_goes() -> None:
    fact = "Dinner with Marta is at Luigi's on Friday at 19:30."

    attempt = chosen(a_long_chat(a_unit(fact)))

    assert fact in texts(attempt.state)


def test_a_sentence_is_chosen_out_of_its_message() -> None:
    told = a_unit(
        f"{CHATTER} The spare key hangs at Ferrante's bakery, hook 14. {CHATTER}", id="told", role=Role.ASSISTANT
    )

    attempt = chosen(a_long_chat(told, limit=60))

    (shortened,) = (unit for unit in attempt.state.units if unit.id == "told")
    assert "The spare key hangs at Ferrante's bakery, hook 14." in shortened.content
    assert len(shortened.content) < len(told.content)


def test_every_piece_that_stays_is_verbatim() -> None:
    told = a_unit(f"Rent is €840 in Porto. {CHATTER} Deposit went to Duarte on 3 May. {CHATTER}", id="told")

    attempt = chosen(a_long_chat(told, limit=60))

    (shortened,) = (unit for unit in attempt.state.units if unit.id == "told")
    assert all(piece in told.content for piece in shortened.content.split(GAP))


def test_a_shortened_message_keeps_its_role_and_its_id() -> None:
    told = assistant(f"{CHATTER} I booked REF-48213 for you. {CHATTER}", id="told")

    attempt = chosen(a_long_chat(told, limit=60))

    (shortened,) = (unit for unit in attempt.state.units if unit.id == "told")
    assert shortened.role is Role.ASSISTANT


@pytest.mark.parametrize("mark", [p1, pinned])
def test_protected_units_stay_byte_for_byte(mark: object) -> None:
    told = mark(a_unit(f"{CHATTER} {CHATTER}", id="told"))  # type: ignore[operator]

    attempt = chosen(a_long_chat(told, limit=200))

    assert next(unit for unit in attempt.state.units if unit.id == "told").content == told.content


def test_system_prompt_first_request_and_last_message_stay_byte_for_byte() -> None:
    state = a_long_chat()

    attempt = chosen(state)

    now = {unit.id: unit.content for unit in attempt.state.units}
    assert all(now[unit.id] == unit.content for unit in state.units if unit.id in ("system", "first", "last"))


def test_the_order_is_that_of_the_conversation() -> None:
    state = a_long_chat(a_unit("Alma arrives on 3 May."), a_unit("Bruno arrives on 9 June."))

    attempt = chosen(state)

    places = [ids(state).index(one) for one in ids(attempt.state) if one in ids(state)]
    assert places == sorted(places)


def test_nothing_is_left_out_silently() -> None:
    attempt = chosen(a_long_chat())

    (notice,) = (unit for unit in attempt.state.units if unit.content == NOTICE)
    assert notice.kind is Kind.PLACEHOLDER


def test_there_is_one_notice_however_often_it_is_compacted() -> None:
    once = chosen(a_long_chat(a_unit("Alma arrives on 3 May."))).state

    twice = chosen(replace(once, limit=once.estimated_tokens - 15)).state

    assert [unit.content for unit in twice.units].count(NOTICE) == 1


def test_compacting_the_result_again_changes_nothing() -> None:
    once = chosen(a_long_chat(a_unit("Alma arrives on 3 May."))).state

    assert not play(select_passages, once).changed


def test_what_matches_the_task_is_preferred() -> None:
    told = [a_unit(f"Somebody called {name} paid {at} euros for a {thing}.") for at, (name, thing) in enumerate(_MANY)]
    unasked, asked = (chosen(a_long_chat(*told, limit=110, task=task)) for task in ("", "How much was the accordion?"))

    assert "accordion" in texts(asked.state)
    assert "accordion" not in texts(unasked.state)


_MANY = tuple(
    zip(
        ("Ada", "Ben", "Cleo", "Dirk", "Edda", "Finn", "Gita", "Hugo", "Ines", "Juno", "Kaja", "Liam"),
        ("lamp", "canoe", "piano", "stove", "accordion", "kite", "sofa", "drum", "tent", "globe", "loom", "sled"),
        strict=True,
    )
)


def test_similar_passages_are_asked_for_once_and_only_with_a_task() -> None:
    listening = Listening()

    play(select_passages, a_long_chat(a_unit("Alma arrives on 3 May."), task="Alma"), listening)
    play(select_passages, a_long_chat(a_unit("Alma arrives on 3 May.")), listening)

    assert [type(need) for need in listening.needs] == [Embed]


def test_an_embedder_that_answers_is_heard() -> None:
    said = [f"Somebody called {name} paid {at} euros for a {thing}." for at, (name, thing) in enumerate(_MANY)]
    told = [a_unit(text, role=Role.ASSISTANT) for text in said]
    state = a_long_chat(*told, limit=100, task="How much did somebody pay for the musical thing?")

    def answer(need: object) -> Embedded | None:
        if not isinstance(need, Embed):
            return None
        alike = [1.0 if re.search("musical|accordion", text) else 0.0 for text in need.texts]
        return Embedded(vectors=np.array([[one, 1 - one] for one in alike], dtype=np.float32), name="by hand")

    assert "accordion" in texts(play(select_passages, state, answer).state)
    assert "accordion" not in texts(play(select_passages, state).state)


def test_a_short_reply_brings_its_question_along() -> None:
    asked = assistant("Which gate does the Helsinki ferry leave from?")
    reply = a_unit("Terminal 7, near Kauppatori.")

    attempt = chosen(a_long_chat(asked, reply))

    standing = texts(attempt.state)
    assert "Helsinki ferry" in standing
    assert "Kauppatori" in standing


def test_a_rule_of_the_users_stays_in_its_place() -> None:
    rule = "Never book anything before nine."
    state = a_long_chat(a_unit(f"{CHATTER} {rule} {CHATTER}", id="told"), limit=90)
    kit = replace(KIT, entries=extract(state.units))

    attempt = chosen(state, kit)

    assert rule in texts(attempt.state)


def test_tool_rounds_become_a_digest_that_names_the_tools() -> None:
    found = a_round("I look it up.", "order W4173664 was shipped to Lisbon")

    attempt = chosen(a_long_chat(*found, a_unit("So W4173664 goes to Lisbon.")))

    (digest,) = (unit for unit in attempt.state.units if unit.content.startswith(HEADER))
    assert "> look" in digest.content
    assert "order W4173664 was shipped to Lisbon" in digest.content
    assert digest.kind is Kind.SUMMARY
    assert digest.role is Role.USER
    assert set(digest.source_ids) == {unit.id for unit in found}


def test_no_call_is_left_without_its_result() -> None:
    state = a_long_chat(*a_round("I look.", "order W1 shipped", "order W2 lost"), a_unit("W1 and W2, then."))

    attempt = chosen(state)

    asked = [call.id for unit in attempt.state.units for call in unit.calls]
    answered = [unit.answers for unit in attempt.state.units if unit.answers]
    assert asked == answered


def test_one_error_in_a_long_log_stays() -> None:
    lines = [f"2024-03-13 08:{at:02}:00 INFO  [cache] restored entry number {at}" for at in range(40)]
    error = "2024-03-13 08:29:00 ERROR [upload] bucket refused part 25: quota used up"
    log = "\n".join([*lines[:29], error, *lines[29:]])

    attempt = chosen(a_long_chat(*a_round("I read the log.", log)))

    assert error in texts(attempt.state)


def test_a_record_is_chosen_out_of_a_long_result() -> None:
    rows = ", ".join(f'{{"id": "S{4000 + at}", "doctor": "Dr. Name{at}", "room": "A{at}"}}' for at in range(60))
    state = a_long_chat(*a_round("I look.", f"[{rows}]"), a_unit("I take S4037, please."), limit=200)

    attempt = chosen(state)

    assert "id=S4037 doctor=Dr. Name37 room=A37" in texts(attempt.state)


def test_passages_fill_no_more_than_the_goal() -> None:
    state = a_long_chat(limit=200, config=replace(FULL, goal=0.5))

    assert chosen(state).state.estimated_tokens <= 100


def test_chinese_is_chosen_by_its_sentences() -> None:
    told = a_unit("今天天气不错。我们慢慢聊吧。我对花生过敏，请记住。好的好的。", id="told")

    attempt = chosen(a_long_chat(told, limit=130))

    assert "我对花生过敏，请记住。" in texts(attempt.state)


@pytest.mark.parametrize("rows", [8, 80])
def test_a_result_of_the_open_round_stays_whole(rows: int) -> None:
    result = "row " * rows
    state = a_state(a_unit("Go on."), *small_talk(12), *a_round("I look.", result), limit=120, config=FULL)

    attempt = chosen(state)

    assert result in [unit.content for unit in attempt.state.units]


def test_everything_that_leaves_was_read_in_full() -> None:
    told = a_unit(f"{CHATTER} {CHATTER}", id="told")

    attempt = chosen(a_long_chat(told))

    (read,) = (read for read in attempt.reads if read.source_id == "told")
    assert read.read == read.total == len(told.content)


def test_the_receipt_says_that_what_was_dropped_was_read() -> None:
    state = a_long_chat(limit=90)

    attempt = chosen(state)

    extents = {one.source_id: one.extent for one in receipts(state.units, attempt.state.units, attempt.reads)}
    dropped = set(ids(state)) - set(ids(attempt.state))
    assert {extents[one] for one in dropped} == {Extent.IN_FULL}


def test_where_protected_units_fill_the_limit_nothing_is_done() -> None:
    state = a_state(p1(a_unit(CHATTER * 5)), *small_talk(4), p1(a_unit(CHATTER * 5)), limit=60, config=FULL)

    attempt = play(select_passages, state)

    assert not attempt.changed
    assert "no room" in attempt.note


def test_images_count_with_the_message_that_holds_them() -> None:
    state = a_long_chat(a_unit("Look: REF-1234 and REF-5678 in Porto.", image_tokens=100), limit=150)

    attempt = chosen(state)

    assert attempt.state.estimated_tokens <= 150


def test_a_thousand_messages_of_one_word_are_no_trouble() -> None:
    state = a_state(a_unit("Go."), *(a_unit(f"w{at}") for at in range(1000)), limit=100, config=FULL)

    assert chosen(state).state.estimated_tokens <= 100
