"""prioritize_recent: what is relevant, recent or protected stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from health.compaction.choosing.scoring import relevance
from health.compaction.config import ContextConfig, DiscardLowRel, PlaceholderDetail, PrioritizeRecent
from health.compaction.strategies.prioritize_recent import prioritize_recent
from health.compaction.terms.ports import Embed
from health.compaction.terms.units import Role, Unit
from tests.health.compaction.builders import (
    KIT,
    Listening,
    a_marked,
    a_round,
    a_state,
    a_talk,
    a_unit,
    between,
    finish,
    ids,
    like_marked,
    p1,
    p3,
    placeholders_in,
    play,
)


def kept(*middle: Unit, **fields: object) -> list[str]:
    """The ids that are left when these units are judged."""
    state = a_state(*between(*middle), task="the task", **fields)  # type: ignore[arg-type]
    return ids(play(prioritize_recent, state, like_marked).state)


def with_settings(**settings: float) -> ContextConfig:
    return ContextConfig(prioritize_recent=PrioritizeRecent(**settings))


def test_a_unit_just_under_the_threshold_or_under_another_goes() -> None:
    assert "x" not in kept(a_marked(0.49, id="x"))
    assert "x" not in kept(a_marked(0.6, id="x"), config=with_settings(rel_threshold=0.7))


def test_it_tells_how_relevant_what_went_was() -> None:
    state = a_state(*between(a_marked(0.2, id="x"), a_marked(0.3, id="y"), a_marked(0.9, id="z")), task="the task")

    note = play(prioritize_recent, state, like_marked).note

    assert "2 of 10 older rounds went: relevance 0.25 on average, the least that stays is 0.5" in note


def test_a_unit_at_the_threshold_stays() -> None:
    assert "x" in kept(a_marked(0.5, id="x"), a_marked(0.1))


@pytest.mark.parametrize(("judged", "share", "first_kept"), [(8, 0.2, 7), (9, 0.2, 7), (8, 0.5, 4)])
def test_the_last_fifth_rounded_up_or_another_share_stays_whatever_it_says(
    judged: int, share: float, first_kept: int
) -> None:
    units = [a_unit("first"), *(a_marked(0.1, id=f"x{i}") for i in range(judged)), a_unit("go on", id="last")]
    state = a_state(*units, task="task", config=with_settings(recent_bias=share))

    after = play(prioritize_recent, state, like_marked).state

    assert ids(after)[2:] == [*(f"x{i}" for i in range(first_kept, judged)), "last"]


def test_p1_stays_however_irrelevant() -> None:
    assert "x" in kept(p1(a_marked(0.0, id="x")), a_marked(0.1))


@pytest.mark.parametrize(("cosine", "score"), [(0.34, 0.51), (0.9, 1.0)])
def test_p1_is_boosted_once_and_not_twice_and_never_above_one(cosine: float, score: float) -> None:
    unit = p1(a_marked(cosine))
    state = a_state(*between(unit), task="the task")

    scores = finish(relevance(state, KIT, [unit]), like_marked).scores

    assert scores[unit.id] == pytest.approx(score, abs=0.001)
    assert scores[unit.id] <= 1


@pytest.mark.parametrize("mark", [p3, replace])
def test_p3_and_untagged_units_are_judged_alike(mark: Callable[[Unit], Unit]) -> None:
    assert "x" not in kept(mark(a_marked(0.4, id="x")))


def test_units_are_matched_by_id_so_that_not_everything_goes() -> None:
    """The first plan compared copies by identity, kept nothing and called it a success."""
    units = between(a_marked(0.9, id="x"), a_marked(0.1, id="y"))
    state = a_state(*units, task="the task")

    after = play(prioritize_recent, state, like_marked).state

    assert set(ids(units)) - set(ids(after)) == {"y"}


def test_equal_texts_are_told_apart_by_their_ids() -> None:
    twin = a_marked(0.1, id="old")
    state = a_state(*between(twin, tail=5), replace(twin, id="new", timestamp=1e9), task="the task")

    after = ids(play(prioritize_recent, state, like_marked).state)

    assert "old" not in after
    assert "new" in after


def test_a_round_stays_whole_for_its_best_part() -> None:
    asked, answered = a_round("~0.1 " + "word " * 29, "~0.8 " + "word " * 29, id="r")

    assert {"r-a", "r-t0"} <= set(kept(asked, answered, a_marked(0.1)))


def test_a_round_goes_whole_when_no_part_is_relevant() -> None:
    asked, answered = a_round("~0.1 " + "word " * 29, "~0.2 " + "word " * 29, id="r")

    assert not {"r-a", "r-t0"} & set(kept(asked, answered))


def test_a_round_that_reaches_into_the_recent_part_stays_whole() -> None:
    round_ = a_round("~0.1 " + "word " * 29, "~0.1 " + "word " * 29, id="r")
    units = [a_unit("first"), *(a_marked(0.1) for _ in range(6)), *round_, a_unit("go on", id="last")]

    after = play(prioritize_recent, a_state(*units, task="task"), like_marked).state

    assert {"r-a", "r-t0"} <= set(ids(after))


def test_where_all_is_highly_relevant_nothing_changes_and_it_says_so() -> None:
    """The first plan forced a fresh start here, before other strategies had their turn."""
    state = a_state(*between(*(a_marked(0.9) for _ in range(5))), task="the task", limit=10)

    attempt = play(prioritize_recent, state, like_marked)

    assert (attempt.changed, attempt.state, attempt.note) == (False, state, "everything is highly relevant")


def test_without_a_task_nothing_is_judged() -> None:
    units = [a_unit("words " * 30, role=Role.ASSISTANT) for _ in range(10)]

    attempt = play(prioritize_recent, a_state(*units))

    assert (attempt.changed, attempt.note) == (False, "there is no task to be relevant to")


def test_each_gap_has_its_placeholder() -> None:
    units = between(a_marked(0.1, id="a"), a_marked(0.9), a_marked(0.1, id="b"))

    after = play(prioritize_recent, a_state(*units, task="the task"), like_marked).state

    assert [unit.source_ids for unit in placeholders_in(after)] == [("a",), ("b",)]


def test_placeholders_are_linked_where_the_configuration_says_so() -> None:
    linked = ContextConfig(discard_low_rel=DiscardLowRel(placeholder_detail=PlaceholderDetail.LINKED))
    state = a_state(*between(a_marked(0.1, id="x")), task="the task", config=linked)

    (told,) = placeholders_in(play(prioritize_recent, state, like_marked).state)

    assert told.content == "[Omitted – see archive]\n1 message: x"


def test_a_placeholder_is_not_judged_by_its_words() -> None:
    once = play(prioritize_recent, a_state(*between(a_marked(0.1)), task="task"), like_marked).state
    listening = Listening(like_marked)

    play(prioritize_recent, once, listening)

    assert not any("Omitted" in text for need in listening.needs if isinstance(need, Embed) for text in need.texts)


def test_irrelevant_units_smaller_than_their_placeholder_stay() -> None:
    state = a_state(*between(a_unit("~0.1 ok", id="x", role=Role.ASSISTANT)), task="the task")

    attempt = play(prioritize_recent, state, like_marked)

    assert (attempt.changed, attempt.state) == (False, state)


def test_all_scores_are_asked_for_in_one_batch() -> None:
    """The first plan used promises as numbers; scores come before anything is decided."""
    listening = Listening(like_marked)

    play(prioritize_recent, a_state(*between(a_marked(0.1), a_marked(0.2)), task="task"), listening)

    assert len(listening.needs) == 1


@pytest.mark.parametrize(
    ("about", "other", "task"),
    [
        (
            "the harbour crane permit was renewed " * 5,
            "lunch menus change every second week " * 5,
            "harbour crane permit renewed",
        ),
        ("港口起重机许可证已经续期" * 4, "食堂菜单每两周更换一次吧" * 4, "港口起重机许可证续期"),
    ],
)
def test_without_an_embedder_words_decide(about: str, other: str, task: str) -> None:
    judged = [a_unit(text, id=name, role=Role.ASSISTANT) for name, text in (("about", about), ("other", other))]
    units = (a_unit("first"), *judged, *a_talk(9, words=30), a_unit(task))

    after = ids(play(prioritize_recent, a_state(*units, task=task)).state)

    assert ("about" in after, "other" in after) == (True, False)
