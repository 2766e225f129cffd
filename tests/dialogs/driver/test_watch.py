"""An answer as it grows: what of it is counted, when it is to be cut, and where a cut would help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dialogs.context.border import Context, read_context
from dialogs.context.estimate import RequestEstimate, Sizing
from dialogs.driver.watch import Watch
from dialogs.llms.guard import Guard
from dialogs.models import Dialog
from dialogs.providers.base import ArgumentsDelta, Finished, ReasoningDelta, StreamEvent, TextDelta
from dialogs.transcript.reads.path import course_branch
from dialogs.turns.reads.turns import dialog_to_drive
from health.compaction.config import ContextConfig
from health.tokens.calibration import RawEstimate
from tests.dialogs.compaction_runs import a_run
from tests.dialogs.driver.conftest import ask
from tests.health.compaction.builders import WordCounter

WINDOW = 1000


def a_guard(limit: int = WINDOW) -> Guard:
    return Guard(
        limit=limit, tried=limit, reserve=0, answer=0, window=WINDOW, config=ContextConfig(), chain=(), trace=()
    )


def a_sizing(prompt: int | None, *, at_most: int | None = None, context: Context | None = None) -> Sizing:
    """Of a request that is so large, by its estimate, if one was made, and by its bytes; a word is a token."""
    sizing = Sizing(context, ())  # type: ignore[arg-type]
    sizing.__dict__.update(counter=WordCounter(), at_most=at_most)
    if prompt is not None:
        sizing.__dict__["request_estimate"] = RequestEstimate(tokens=prompt, raw=RawEstimate(text=prompt))
    return sizing


def watching(prompt: int, *events: StreamEvent, window: int = WINDOW) -> Watch:
    watch = Watch(a_sizing(prompt), a_guard(), window)
    for event in events:
        watch.add(event)
    watch.count()
    return watch


@pytest.mark.parametrize("kind", [TextDelta, ReasoningDelta, ArgumentsDelta])
def test_all_that_the_model_writes_is_counted_and_what_ends_it_counts_for_nothing(kind: type[TextDelta]) -> None:
    assert watching(899, kind("one two three "), Finished("stop")).tokens == 902


def test_what_came_is_counted_once_and_as_one_text() -> None:
    watch = watching(0, TextDelta("one t"), TextDelta("wo "), TextDelta(" three"))
    assert watch.received_tokens == 3

    watch.count()
    assert watch.received_tokens == 3

    watch.add(TextDelta("four"))
    watch.count()
    assert watch.received_tokens == 4


@pytest.mark.parametrize(
    ("prompt", "at_most", "far"),
    [
        (None, 899, True),  # by its bytes; nine tenths are 900
        (None, 900, False),
        (None, None, False),  # of which bytes say nothing
        (899, 2000, True),  # as it was estimated
        (900, 100, False),
    ],
)
def test_it_is_far_from_the_mark_while_the_prompt_is_surely_below(
    prompt: int | None, at_most: int | None, far: bool
) -> None:
    assert Watch(a_sizing(prompt, at_most=at_most), a_guard(), WINDOW).is_far is far


@pytest.mark.parametrize(("prompt", "far"), [(788, True), (789, False)])
def test_and_while_it_is_by_all_that_came(prompt: int, far: bool) -> None:
    """Of 900 tokens one was counted, and 110 letters may be as many: 789 are left."""
    watch = watching(prompt, TextDelta("x" * 200))

    watch.add(TextDelta("x" * 100))
    watch.add(ReasoningDelta("x" * 10))

    assert watch.is_far is far


@pytest.mark.parametrize(("prompt", "far"), [(859, True), (860, False)])
def test_a_character_that_no_vocabulary_has_may_be_a_token_for_each_of_its_bytes(prompt: int, far: bool) -> None:
    watch = Watch(a_sizing(prompt), a_guard(), WINDOW)

    watch.add(TextDelta("𒀀" * 10))

    assert watch.is_far is far


@pytest.mark.parametrize(("window", "over"), [(WINDOW, 30), (2000, -870)])
def test_it_is_over_the_mark_by_what_is_more_than_nine_tenths_of_the_window(window: int, over: float) -> None:
    assert watching(930, window=window).over == pytest.approx(over)


# The share of its patience that a watch has where an answer ends like this.
ENDS: dict[str, float] = {
    "It boi": 1.0,
    "It boils ": 0.5,
    "It boils:": 0.5,
    "水已经开": 0.5,
    "It boils.": 0.0,
    "It boils! ": 0.0,
    'Does it boil?"': 0.0,
    "(It boils.)": 0.0,
    "水开了。": 0.0,
    "「水开了。」": 0.0,
    "- a boiler\n": 0.0,
    "It boils at 3.": 0.5,  # the number may go on
    "It boils.       ": 0.0,  # the end of a sentence, and seven blanks
    "It boils.        ": 0.5,  # and eight: nobody looks farther back
}


@pytest.mark.parametrize(("window", "patience"), [(WINDOW, 20), (10_000, 40)])
@pytest.mark.parametrize(("text", "share"), ENDS.items())
def test_an_answer_is_cut_where_a_sentence_ends_or_a_word_or_where_it_went_on_for_long(
    text: str, share: float, window: int, patience: int
) -> None:
    mark, received = window * 9 // 10, WordCounter().count([text])[0]
    too_early, in_time = (round(mark + share * patience - received + more) for more in (-1, 0))

    assert not watching(too_early, TextDelta(text), window=window).is_at_the_mark
    assert watching(in_time, TextDelta(text), window=window).is_at_the_mark


@pytest.mark.parametrize(
    ("prompt", "events"),
    [
        # Its pieces are read as one.
        (898, [TextDelta("It boils"), TextDelta("."), TextDelta(" ")]),
        (898, [TextDelta("It boi"), ReasoningDelta("boiling")]),
        (898, [TextDelta("It boi"), ArgumentsDelta("boiling")]),
        (900, []),
    ],
    ids=["a sentence in pieces", "thoughts", "a call", "not a word"],
)
def test_thoughts_calls_and_what_has_not_said_a_word_are_cut_at_once(prompt: int, events: list[StreamEvent]) -> None:
    assert watching(prompt, *events).is_at_the_mark


@pytest.mark.parametrize(("prompt", "full"), [(999, False), (1000, True)])
def test_a_window_is_full_when_prompt_and_answer_fill_it(prompt: int, full: bool) -> None:
    assert watching(prompt).is_full is full


def context_of(dialog: Dialog) -> Context:
    row = dialog_to_drive(dialog.pk)
    return read_context(row, course_branch(row.current_leaf))


def can_help(dialog: Dialog, prompt: int, *, limit: int = WINDOW) -> bool:
    return Watch(a_sizing(prompt, context=context_of(dialog)), a_guard(limit), WINDOW).can_help()


def least_limit(dialog: Dialog, prompt: int) -> int:
    """The smallest of these limits with which a cut at nine tenths of the window would help."""
    return next(limit for limit in range(500, 2000, 10) if can_help(dialog, prompt, limit=limit))


@pytest.mark.django_db
def test_a_cut_helps_where_prompt_and_answer_can_be_made_to_fit(dialog: Dialog) -> None:
    """And the last compaction from this message did not come to nothing."""
    ask(dialog)
    assert can_help(dialog, 850)
    assert can_help(dialog, 850, limit=700)  # next to nothing must stay

    a_run(dialog, status="skipped")

    assert not can_help(dialog, 850)


def instruct(dialog: Dialog, *, words: int) -> None:
    """What an agent is told stays in any case."""
    dialog.agent.instructions = " ".join(["word"] * words)
    dialog.agent.save()


@pytest.mark.django_db
def test_a_cut_does_not_help_where_what_must_stay_leaves_no_room_for_what_was_said(dialog: Dialog) -> None:
    instruct(dialog, words=600)
    ask(dialog)

    unsaid, a_little, long = (least_limit(dialog, prompt) for prompt in (900, 800, 620))

    assert 660 < unsaid < 700  # nine tenths hold 600 words, and what is around them
    assert 100 <= a_little - unsaid <= 120  # and a hundred tokens that were said
    assert long == unsaid  # what is longer than two fifths can go


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("prompt", "limit", "helps"),
    [
        (621, 690, True),  # 279 were said, more than two fifths; the prompt is nine tenths
        (622, 690, False),
        (620, 700, True),  # 280 were said, two fifths
        (850, 1000, True),  # 50 were said, and stay: 900 are nine tenths
        (1000, 750, False),  # nothing was said, and nine tenths are less than 700
        (780, 850, False),  # 120 were said, and stay: neither 900 nor 820 are less than 765
    ],
)
def test_where_nothing_can_go_prompt_and_answer_must_fit_as_they_are(
    dialog: Dialog, prompt: int, limit: int, helps: bool
) -> None:
    instruct(dialog, words=700)
    ask(dialog)

    assert can_help(dialog, prompt, limit=limit) is helps


@pytest.mark.django_db
def test_the_task_and_the_tools_must_stay_too(dialog: Dialog) -> None:
    ask(dialog)
    context, long = context_of(dialog), " ".join(["word"] * 800)
    tools = [{"type": "function", "function": {"name": "look", "description": long, "parameters": {}}}]
    busy = replace(context, task=long)

    plain, tasked = (a_sizing(900, context=each) for each in (context, busy))
    equipped = Sizing(context, tools)
    equipped.__dict__.update(plain.__dict__ | {"tools": tools})

    assert Watch(plain, a_guard(800), WINDOW).can_help()
    assert not Watch(tasked, a_guard(800), WINDOW).can_help()
    assert not Watch(equipped, a_guard(800), WINDOW).can_help()


@pytest.mark.django_db
def test_a_dialog_without_a_message_is_not_cut(dialog: Dialog) -> None:
    context = read_context(dialog_to_drive(dialog.pk), [])

    assert not Watch(a_sizing(100, context=context), a_guard(), WINDOW).can_help()
