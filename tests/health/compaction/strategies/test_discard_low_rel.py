"""discard_low_rel: the least relevant 30 % go, and leave placeholders where they stood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from health.compaction.config import ContextConfig, DiscardLowRel, PlaceholderDetail
from health.compaction.strategies.discard_low_rel import discard_low_rel
from health.compaction.terms.ports import Answer, Embed, Embedded, Need
from health.compaction.terms.units import ContextState, Kind, Role, Unit
from tests.health.compaction.builders import (
    Listening,
    a_marked,
    a_round,
    a_state,
    a_unit,
    ids,
    like_marked,
    p1,
    placeholders_in,
    play,
)


def config(**settings: object) -> ContextConfig:
    """Coherence is let pass, except where a test is about it."""
    return ContextConfig(discard_low_rel=DiscardLowRel(**({"min_coherence": 0.0} | settings)))  # type: ignore[arg-type]


def ten(*cosines: float, mark: Callable[[Unit], Unit] = replace, **settings: object) -> ContextState:
    """Ten units: a request, eight marked ones x0 … x7 (0.9 unless told), and a last word. The mark is for x0."""
    marks = (*cosines, *([0.9] * 8))[:8]
    first, *middle, last = (
        a_unit("first", id="first"),
        *(a_marked(cosine, id=f"x{number}") for number, cosine in enumerate(marks)),
        a_unit("go on", id="last"),
    )
    units = (first, mark(middle[0]), *middle[1:], last)
    return a_state(
        *(replace(unit, timestamp=float(at)) for at, unit in enumerate(units)), task="task", config=config(**settings)
    )


def dropped(state: ContextState, answer: Callable[[Need], Answer] = like_marked) -> list[str]:
    after = set(ids(play(discard_low_rel, state, answer).state))
    return [unit.id for unit in state.units if unit.id not in after]


def test_of_ten_units_the_three_least_relevant_go_or_another_share() -> None:
    assert dropped(ten(0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.6, 0.5)) == ["x1", "x3", "x5"]
    assert dropped(ten(0.9, 0.1, 0.8, 0.2, 0.7, 0.3, discard_percent=0.1)) == ["x1"]


def test_among_equals_the_older_goes_first() -> None:
    assert dropped(ten(*([0.4] * 8))) == ["x0", "x1", "x2"]


def test_what_is_kept_is_rounded_up() -> None:
    state = ten(0.1, 0.1, 0.1, 0.1)
    eleven = replace(state, units=(*state.units[:9], replace(state.units[8], id="x8"), state.units[9]))

    assert len(dropped(eleven)) == 3


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ({}, "[Omitted low-relevance prior context]\n3 messages"),
        ({"placeholder_detail": PlaceholderDetail.LINKED}, "[Omitted – see archive]\n3 messages: x0 to x2"),
    ],
)
def test_the_placeholder_has_the_seeds_words_and_the_time_of_what_went(detail: dict[str, object], words: str) -> None:
    state = ten(0.1, 0.1, 0.1, **detail)

    (told,) = placeholders_in(play(discard_low_rel, state, like_marked).state)

    assert (told.content, told.timestamp) == (words, state.units[1].timestamp)


def test_each_gap_has_a_placeholder_where_it_is() -> None:
    """The first plan put one at the end, where it read as the newest event."""
    after = play(discard_low_rel, ten(0.1, 0.9, 0.1, 0.9, 0.1), like_marked).state

    kinds = [unit.kind is Kind.PLACEHOLDER for unit in after.units]
    assert kinds == [False, True, False, True, False, True, False, False, False, False]


def test_repeated_runs_have_ids_that_differ() -> None:
    """The first plan's constant id collided with itself."""
    once = play(discard_low_rel, ten(0.1, 0.9, 0.2, 0.9, 0.3, 0.9, 0.4, 0.9), like_marked).state

    twice = play(discard_low_rel, once, like_marked).state

    assert len(placeholders_in(twice)) > 1
    assert len(set(ids(twice))) == len(twice.units)


def test_a_second_run_merges_placeholders_that_come_to_touch() -> None:
    once = play(discard_low_rel, ten(0.1, 0.4, 0.2, 0.9, 0.9, 0.9, 0.9, 0.9, discard_percent=0.2), like_marked).state

    twice = play(discard_low_rel, once, like_marked).state

    assert [unit.source_ids for unit in placeholders_in(twice)] == [("x0", "x1", "x2")]


def test_p1_stays_however_irrelevant() -> None:
    """In the first plan the P1 unit was the first to go."""
    state = ten(0.0, 0.1, 0.2, 0.3, mark=p1)

    assert dropped(state) == ["x1", "x2", "x3"]


@pytest.mark.parametrize("middle", [(a_marked(0.0),), a_round("look", *["~0.1 " + "word " * 29] * 4)])
def test_where_only_more_than_the_share_could_go_nothing_changes_and_nothing_is_added(middle: tuple[Unit, ...]) -> None:
    """The first plan dropped nothing and added a placeholder."""
    state = a_state(a_unit("first"), *middle, a_unit("go on"), task="task", config=config())

    attempt = play(discard_low_rel, state, like_marked)

    assert (attempt.changed, attempt.state) == (False, state)


def with_round(*cosines: float, results: int = 1) -> ContextState:
    texts = [f"~{cosine} " + "word " * 29 for cosine in cosines]
    state = ten()
    round_ = a_round(texts[0], *texts[1 : results + 1], id="r")
    units = (*state.units[:3], *(replace(unit, timestamp=2.5) for unit in round_), *state.units[3:])
    return a_state(*units, task="task", config=config())


def test_a_round_goes_whole() -> None:
    assert {"r-a", "r-t0"} <= set(dropped(with_round(0.1, 0.2)))


def test_a_round_counts_with_its_best_part() -> None:
    assert not {"r-a", "r-t0"} & set(dropped(with_round(0.1, 1.0)))


def test_a_round_larger_than_the_share_stays_and_others_go() -> None:
    """The first plan knew no rounds and broke them."""
    state = with_round(0.1, 0.1, 0.1, 0.1, 0.1, results=4)

    assert dropped(state) == ["x0", "x1", "x2", "x3"]


def test_a_unit_smaller_than_its_placeholder_stays() -> None:
    state = ten(0.9, 0.1, 0.9, 0.2, 0.9, 0.2)
    small = replace(state.units[2], content="~0.0 ok", estimated_tokens=None)
    state = a_state(*state.units[:2], small, *state.units[3:], task="task", config=config())

    assert "x1" not in dropped(state)


def test_without_a_task_nothing_goes() -> None:
    units = [a_unit("words " * 30, role=Role.ASSISTANT) for _ in range(10)]

    assert play(discard_low_rel, a_state(*units)).note == "there is no task to be relevant to"


def lost_thread(need: Need) -> Answer:
    """Embeds x0 to x2 in one direction, all else in another: without them the context is about something else."""
    if not isinstance(need, Embed):
        return None
    side = [[1.0, 0.1] if text.startswith("~0.1") else [0.05, 1.0] for text in need.texts]
    rows = np.array(side, dtype=np.float32)
    return Embedded(vectors=rows / np.linalg.norm(rows, axis=1, keepdims=True), name="sides")


def incoherent() -> ContextState:
    """Eight units about one thing between two about another: without the eight, the thread is lost."""
    return replace(ten(*([0.1] * 8), min_coherence=0.6, discard_percent=0.8), task="")


def test_what_breaks_coherence_is_undone_and_no_second_summary_is_tried() -> None:
    """The first plan's undo could loop, as the summary had been tried already."""
    state = incoherent()

    attempt = play(discard_low_rel, state, lost_thread)

    assert (attempt.changed, attempt.state) == (False, state)
    assert attempt.note.startswith("undone: coherence 0.")
    assert "tried" not in attempt.note


def test_the_bound_of_coherence_is_configured() -> None:
    lenient = incoherent()
    lenient = replace(lenient, config=config(min_coherence=0.0, discard_percent=0.8))

    assert play(discard_low_rel, lenient, lost_thread).changed


def test_the_seeds_bound_of_coherence_is_six_tenths() -> None:
    assert DiscardLowRel().min_coherence == 0.6


def test_after_an_undoing_a_summary_is_tried_where_the_chain_has_none() -> None:
    state = incoherent()
    state = replace(state, config=replace(state.config, chain_order=("discard_low_rel",)))

    attempt = play(discard_low_rel, state, lost_thread)

    assert "undone: coherence" in attempt.note
    assert "tried summarize_old" in attempt.note


def test_all_scores_are_asked_for_in_one_batch() -> None:
    listening = Listening(like_marked)

    play(discard_low_rel, ten(0.1, 0.2), listening)

    relevance, *coherence = listening.needs
    assert isinstance(relevance, Embed)
    assert len(coherence) == 1


def test_chinese_that_is_about_something_else_goes() -> None:
    about = [a_unit(f"港口起重机许可证已经续期{i}" * 4, id=f"a{i}", role=Role.ASSISTANT) for i in range(5)]
    other = [a_unit(f"食堂菜单每两周更换一次吧{i}" * 4, id=f"o{i}", role=Role.ASSISTANT) for i in range(3)]
    units = (a_unit("开始", id="first"), *other, *about, a_unit("港口起重机许可证续期", id="last"))

    assert dropped(a_state(*units, task="港口起重机许可证续期", config=config())) == ["o0", "o1", "o2"]
