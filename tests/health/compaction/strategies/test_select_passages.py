"""Choosing passages: what is needed most stays, verbatim, in its own message, within the limit."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from health.compaction.accounts import receipts
from health.compaction.choosing.sources import Frame, sources_of
from health.compaction.config import ContextConfig, SelectPassages
from health.compaction.reading.digest import GAP, HEADER, NOTICE
from health.compaction.reading.ledger import extract
from health.compaction.strategies.passage_context import PassageContext
from health.compaction.strategies.select_passages import select_passages
from health.compaction.terms.outcome import Extent
from health.compaction.terms.ports import Attempt, Embed, Embedded, Kit
from health.compaction.terms.units import ContextState, Kind, Role, Unit
from health.services import compact_messages
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


def test_nothing_is_left_out_silently() -> None:
    attempt = chosen(a_long_chat())

    (notice,) = (unit for unit in attempt.state.units if unit.content == NOTICE)
    assert notice.kind is Kind.PLACEHOLDER


def test_a_notice_of_an_earlier_version_is_known_again() -> None:
    earlier = "[Shortened: […] marks gaps. All is in the archive.]"
    notice = a_unit(earlier, kind=Kind.PLACEHOLDER, source_ids=("gone",))

    attempt = chosen(a_long_chat(notice, a_unit("Alma arrives on 3 May.")))

    assert earlier not in texts(attempt.state)


def test_there_is_one_notice_however_often_it_is_compacted() -> None:
    once = chosen(a_long_chat(a_unit("Alma arrives on 3 May."))).state

    twice = chosen(replace(once, limit=once.estimated_tokens - 15)).state

    assert [unit.content for unit in twice.units].count(NOTICE) == 1


def test_what_matches_the_task_is_preferred() -> None:
    told = [a_unit(f"Somebody called {name} paid {at} euros for a {thing}.") for at, (name, thing) in enumerate(_MANY)]
    unasked, asked = (chosen(a_long_chat(*told, limit=90, task=task)) for task in ("", "How much was the accordion?"))

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
    state = a_long_chat(*told, limit=106, task="How much did somebody pay for the musical thing?")

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


# Sentences of the first request that a later one took the place of

ROOM = 60


def counted_state(*units: Unit, limit: int = 90) -> ContextState:
    return a_state(*KIT.counted(units), limit=limit)


def planned(*later: str, first: Unit) -> ContextState:
    """A first request, what was said of it since, much small talk, a last question."""
    said = [unit for text in later for unit in (a_unit(text), assistant("Noted."))]
    return a_state(first, assistant("Noted."), *said, *small_talk(12), a_unit("What now?", id="last"), limit=ROOM)


def test_the_first_request_stands_without_what_was_changed_since_and_says_so() -> None:
    first = a_unit("Help me plan a fair. The tent comes on 4 May.", id="first")

    attempt = chosen(replace(planned("The tent comes on 9 May instead.", first=first), config=FULL))

    assert attempt.state.units[1].content == "Help me plan a fair. […]"
    assert "9 May" in texts(attempt.state)
    assert [str(one.why) for one in attempt.forced] == [
        "What was changed or taken back since was left out of the first request (first): ≈6 of ≈11 tokens."
    ]


def test_a_first_request_that_said_nothing_else_leaves() -> None:
    first = a_unit("The tent comes on 4 May.", id="first")

    attempt = chosen(replace(planned("The tent comes on 9 May instead.", first=first), config=FULL))

    assert "first" not in ids(attempt.state)
    assert "4 May" not in texts(attempt.state)
    assert attempt.forced_ids == {"first"}


def test_one_that_is_pinned_stands_as_it_was_said_and_what_is_outdated_is_told_beside() -> None:
    first = pinned(a_unit("Help me plan a fair. The tent comes on 4 May.", id="first"))

    attempt = chosen(replace(planned("The tent comes on 9 May instead.", first=first), config=FULL, limit=80))

    assert first.content in texts(attempt.state)
    assert "[No longer so: The tent comes on 4 May.]" in texts(attempt.state)
    assert attempt.forced == ()


def test_where_the_next_best_does_not_fit_a_smaller_one_takes_the_room() -> None:
    best, next_best, small = (assistant(text) for text in ("one two", "three four five six", "seven eight"))
    state = counted_state(best, next_best, small, assistant("so " * 60), a_unit("And now?", id="last"))
    frame = Frame(kept=frozenset({"last"}), room=0)
    view = PassageContext(state=state, kit=KIT, frame=frame, sources=sources_of(state.units, frame))

    units = view.fitting([((0, 0),), ((1, 0),), ((2, 0),)], budget_tokens=len(NOTICE.split()) + 2 + 2 + 2)

    assert units is not None
    assert [unit.id for unit in units if unit.content != NOTICE] == [best.id, small.id, "last"]


REPORT = "The pump was checked.\nThe invoice of ACME is due on 3 May. All is well.\nThe valve was checked."


def left_of(report: str, *numbers: int, limit: int, role: Role = Role.USER) -> str:
    """What stands for a message of which these pieces are kept."""
    state = counted_state(a_unit(report, id="report", role=role), a_unit("And now?", id="last"), limit=limit)
    frame = Frame(kept=frozenset({"last"}), room=0)
    view = PassageContext(state=state, kit=KIT, frame=frame, sources=sources_of(state.units, frame))
    return next(unit.content for unit in view.units((0, number) for number in numbers) if unit.id == "report")


@pytest.mark.parametrize(
    ("numbers", "left"),
    [
        ((0,), "The pump was checked.\n[…]"),
        ((1,), "[…]\nThe invoice of ACME is due on 3 May.\n[…]"),
        ((1, 3), "[…]\nThe invoice of ACME is due on 3 May.\n[…]\nThe valve was checked."),
        ((0, 1, 2, 3), REPORT),
    ],
)
def test_a_large_message_says_at_its_ends_too_that_more_stood_there(numbers: tuple[int, ...], left: str) -> None:
    assert left_of(REPORT, *numbers, limit=100) == left


def test_a_small_message_is_spared_the_marks_at_its_ends() -> None:
    """They would cost much of what is left of it: the notice says that there are gaps."""
    assert left_of(REPORT, 1, limit=1000) == "The invoice of ACME is due on 3 May."


def test_an_answer_has_no_mark_at_its_end_where_it_may_be_gone_on_with() -> None:
    assert left_of(REPORT, 0, limit=100, role=Role.ASSISTANT) == "The pump was checked."


def test_marks_at_the_ends_are_no_words_of_the_message_when_it_is_chosen_from_again() -> None:
    told = "[…]\nThe invoice 4471 of ACME over 912 euros is due on 3 May 2031.\n[…]"
    state = a_long_chat(a_unit(told, id="report"))

    (source,) = [one for one in sources_of(state.units, Frame(kept=frozenset(), room=10)) if "ACME" in one.text]

    assert [chunk.text for chunk in source.chunks] == [told.split("\n")[1]]


def test_room_that_an_earlier_ledger_took_is_filled_where_the_next_one_needs_it_no_more() -> None:
    told = [a_unit(f"The lamp of pier {number} is {number}0417 metres from gate {number}.") for number in range(9)]
    plain = a_long_chat(*told)
    with_ledger = replace(plain, overhead_tokens=plain.overhead_tokens + 60, ledger_tokens=60)

    filled, whole = chosen(with_ledger).state, chosen(plain).state
    assert [one.content for one in filled.units] == [one.content for one in whole.units]


def test_where_a_long_piece_does_not_fit_short_ones_take_its_room() -> None:
    long = ", ".join(f"beam B-{number}417 of {number}09 cm" for number in range(13)) + "."
    told = [assistant(f"Pier {number} has lamp L-{number}{number}7.") for number in range(12)]
    state = a_long_chat(assistant(long), *told, limit=170)

    assert chosen(state).state.estimated_tokens > 165


def test_what_was_told_and_changed_comes_before_errands_however_many_and_new() -> None:
    told = ["My dog is called Biscuit.", "Rule: never suggest peanuts.", "We have plot 14.", "What grows in shade?"]
    asked = [f"Question {at}: tell me something short about the vegetable number {at * 7 % 23}." for at in range(40)]
    asked[:4], asked[10] = told, "They moved us, it's plot 22 now."
    said = [unit for text in asked for unit in (a_unit(text), assistant(f"{CHATTER} {text}"))][:-1]

    left = texts(play(select_passages, a_state(*said, limit=200, config=FULL)).state)

    assert [word for word in ("Biscuit", "peanuts", "plot 22") if word not in left] == []


ENGLISH = """
How often should I replace a toothbrush? Does vinyl lose quality when it is played? What hole do titmice need in a
nesting box? Why do my ears hurt when the plane lands? How can I tell whether a melon is ripe? Why does bread go stale?
How long does paint smell linger? What is a good substitute for buttermilk? Who invented the zip fastener?
Which knot holds a hammock best? How do bees find their way home? What makes onions sting?
"""
CHINESE = """
牙刷多久换一次？黑胶唱片越听越差吗？山雀窝的洞口要开多大？飞机降落时耳朵为什么疼？怎么看西瓜熟没熟？
面包放久了为什么发硬？油漆味多久能散？没有酪乳可以用什么代替？拉链是谁发明的？吊床用哪种绳结最牢？
蜜蜂怎么找到回家的路？切洋葱为什么流泪？
"""
ANSWER = {
    ENGLISH: "Here is what I would look at in that case: first at the surroundings, then at the time that has passed "
    "since, and in the end at what it costs. Each of these has consequences, so let us take one after another.",
    CHINESE: "这种情况我会先看周围的环境，再看已经过去的时间，最后看要花多少钱。"
    "每一点都有自己的影响，我们最好一个一个来看。",
}


@pytest.mark.parametrize(
    ("told", "questions"),
    [
        ("My landlord does not allow drilling.", ENGLISH),
        ("I hate coriander.", ENGLISH),
        ("The theme is light now.", ENGLISH),
        ("房东不让打孔。", CHINESE),
        ("我们都吃素。", CHINESE),
        ("我上夜班。", CHINESE),
    ],
)
def test_what_a_person_states_stays_before_questions_that_were_answered(told: str, questions: str) -> None:
    """Also where it names no number, and the assistant answers at length."""
    typed = [" ".join(one.split()) for one in re.findall(r"[^?？]+[?？]", questions)]
    typed.insert(3, told)
    chat = [
        {"role": role, "content": text}
        for one in typed
        for role, text in (("user", one), ("assistant", ANSWER[questions]))
    ]
    limit = sum(KIT.tokens(message["content"]) for message in chat) // 6

    outcome = compact_messages([*chat, chat[0]], limit_tokens=limit, embedder="none")

    kept = "\n".join(message["content"] for message in outcome.messages)
    assert told in kept
    assert sum(one in kept for one in typed) < len(typed) - 3
