"""What relevance and coherence are: bounds, the boost, the query, and what weighs how much."""

from __future__ import annotations

import numpy as np
import pytest

from health.compaction.choosing import scoring
from health.compaction.choosing.scoring import coherence, query_of, relevance, said
from health.compaction.terms.ports import Answer, Embed, Embedded, Need
from health.compaction.terms.units import Call, Kind, Role
from tests.health.compaction.builders import KIT, Listening, a_state, a_talk, a_unit, finish, like_marked, p1


def opposite(need: Need) -> Answer:
    """Every text points away from the query."""
    assert isinstance(need, Embed)
    rows = np.array([[1, 0], *[[-1, 0]] * (len(need.texts) - 1)], dtype=np.float32)
    return Embedded(vectors=rows, name="opposite")


class TestTheQuery:
    def test_is_the_task_and_the_last_user_message(self) -> None:
        state = a_state(a_unit("first"), a_unit("said", role=Role.ASSISTANT), a_unit("last"), task="book a hotel")

        assert query_of(state) == "book a hotel\nlast"

    def test_passes_over_messages_that_the_user_did_not_write(self) -> None:
        inserted = a_unit("your context is nearly full", inserted=True)
        written = a_unit("[Summary of 3 earlier messages]", kind=Kind.SUMMARY)

        state = a_state(a_unit("really said"), inserted, written)

        assert query_of(state) == "really said"

    @pytest.mark.parametrize(
        ("plan", "goal"),
        [
            ("# Release\nsteps\nGoal: ship 2.0 in May\nmore", "Goal: ship 2.0 in May"),
            ("# 计划\n目标：五月发布", "目标：五月发布"),
            ("Ship it\nsomehow", "Ship it"),  # no line names a goal
        ],
    )
    def test_holds_the_goal_of_a_plan(self, plan: str, goal: str) -> None:
        state = a_state(a_unit(plan, kind=Kind.PLAN_REF, role=Role.SYSTEM), a_unit("go on"))

        assert query_of(state) == f"go on\n{goal}"

    def test_is_short_however_long_the_message(self) -> None:
        state = a_state(a_unit("start " + "x" * 1_000_000 + " end"))

        assert len(query_of(state)) < 1300
        assert query_of(state).startswith("start")
        assert query_of(state).endswith("end")


class TestRelevance:
    def score(self, *units: object, answer: object = like_marked) -> dict[str, float]:
        state = a_state(*units, a_unit("the question", id="q"))  # type: ignore[arg-type]
        return finish(relevance(state, KIT, state.units), answer).scores  # type: ignore[arg-type]

    def test_is_the_cosine_to_the_query_raised_once_for_p1_and_asked_for_in_one_request(self) -> None:
        listening = Listening(like_marked)
        units = [a_unit("far ~0.4", id="far"), p1(a_unit("~0.4", id="raised")), p1(a_unit("~0.9", id="highest"))]

        scores = self.score(*units, answer=listening)

        assert scores["far"] == pytest.approx(0.4)
        assert scores["raised"] == pytest.approx(0.6)
        assert scores["highest"] == 1.0
        assert [len(need.texts) for need in listening.needs if isinstance(need, Embed)] == [5]
        assert set(self.score(a_unit("a"), a_unit("b"), answer=opposite).values()) == {0.0}

    def test_without_an_embedder_is_lexical(self) -> None:
        state = a_state(
            a_unit("lunch was soup", id="far"),
            a_unit("the signing key leaked", id="near"),
            a_unit("who leaked the signing key", id="q"),
        )

        found = finish(relevance(state, KIT, state.units))

        assert found.embedder == "lexical"
        assert found.scores["near"] > found.scores["far"]

    @pytest.mark.parametrize(
        "rows",
        [np.ones((1, 2), dtype=np.float32), np.full((2, 2), np.nan, dtype=np.float32)],
        ids=["too few", "not numbers"],
    )
    def test_does_not_trust_an_answer_that_cannot_be_right(self, rows: np.ndarray) -> None:
        state = a_state(a_unit("the question"))

        found = finish(relevance(state, KIT, state.units), lambda need: Embedded(vectors=rows, name="broken"))

        assert found.embedder == "lexical"

    def test_is_unknown_where_nobody_asked_anything(self) -> None:
        state = a_state(a_unit("said", id="a", role=Role.ASSISTANT))

        found = finish(relevance(state, KIT, state.units))

        assert not found.known
        assert found.scores == {"a": 0.0}

    def test_reads_what_was_called(self) -> None:
        call = Call(id="c", name="read_file", arguments='{"path": "keys.py"}')

        assert said(a_unit("Read it.")) == "Read it."
        assert said(a_unit("", calls=(call,))) == '\nread_file {"path": "keys.py"}'


class TestScales:
    @pytest.mark.parametrize("scales", [scoring.RELEVANCE_SCALES, scoring.COHERENCE_SCALES])
    @pytest.mark.parametrize("name", ["lexical", "wordllama"])
    def test_keep_the_order_and_stay_between_zero_and_one(self, scales: dict[str, scoring.Points], name: str) -> None:
        cosines = np.linspace(-1, 1, 201)

        found = scoring.scaled(cosines, scales[name])

        assert (np.diff(found) >= 0).all()
        assert 0 <= found[0] < found[-1] <= 1
        assert all((np.diff(axis) > 0).all() for axis in zip(*scales[name], strict=True))

    def test_leave_minilm_alone(self) -> None:
        assert scoring.scaled(np.array([0.49, 0.5]), scoring.RELEVANCE_SCALES.get("all-MiniLM-L6-v2")).tolist() == [
            0.49,
            0.5,
        ]


class TestCoherence:
    def test_of_a_context_with_itself_is_one_and_zero_when_nothing_or_only_a_placeholder_is_left(self) -> None:
        talk, left = a_talk(6), a_unit("[Omitted word1x1]", kind=Kind.PLACEHOLDER)

        assert finish(coherence(talk, talk, query="word1x1")) == pytest.approx(1.0, abs=1e-5)
        assert finish(coherence((), ())) == 1.0
        assert finish(coherence(talk, ())) == finish(coherence(talk, (left,))) == 0.0

    def test_of_a_nonsense_summary_is_lower_than_of_a_true_one(self) -> None:
        talk = tuple(a_unit(f"the signing key of server {i} leaked in March") for i in range(8))
        sources = tuple(unit.id for unit in talk)
        true = a_unit("the signing key of every server leaked in March", kind=Kind.SUMMARY, source_ids=sources)
        nonsense = a_unit("bananas bananas bananas", kind=Kind.SUMMARY, source_ids=sources)

        assert finish(coherence(talk, (true,))) > 0.6 > 0.2 > finish(coherence(talk, (nonsense,)))

    def test_counts_a_summary_as_much_as_what_it_stands_for(self) -> None:
        talk = tuple(a_unit(f"the signing key of server {i} leaked in March") for i in range(8))
        nonsense = a_unit("bananas", kind=Kind.SUMMARY, source_ids=tuple(unit.id for unit in talk[:7]))
        one_lost = a_unit("bananas", kind=Kind.SUMMARY, source_ids=(talk[0].id,))

        assert finish(coherence(talk, (nonsense, *talk[7:]))) < finish(coherence(talk, (one_lost, *talk[7:])))

    def test_reads_each_line_of_a_summary_without_labels_and_speakers_and_counts_two_of_one_message_once(self) -> None:
        stone, heron = talk = a_unit("a stone"), a_unit("a heron ~0.0")
        lines = "[Summary]\nuser: a stone\nDone:\nuser: a heron ~0.0\n[End of summary]"
        told = a_unit(lines, kind=Kind.SUMMARY, source_ids=tuple(unit.id for unit in talk))
        twice = a_unit("a stone\nthe stone", kind=Kind.SUMMARY, source_ids=(stone.id,))

        for after in ((told,), (twice, heron)):
            assert finish(coherence(talk, after), like_marked) == pytest.approx(1.0, abs=1e-5)

    def test_with_a_query_does_not_forgive_the_loss_of_what_is_protected(self) -> None:
        talk = (*a_talk(4), p1(a_unit("a heron ~0.0")), *a_talk(4, start=4))

        assert finish(coherence(talk, (*talk[:4], *talk[5:]), query="q"), like_marked) < 0.999

    def test_is_told_of_a_summary_that_says_nothing_between_its_labels(self) -> None:
        empty = a_unit("[Summary]\nDone:", kind=Kind.SUMMARY, source_ids=("a",))

        assert finish(coherence((empty,), (empty,), query="q")) == pytest.approx(1.0, abs=1e-5)

    def test_with_a_query_forgives_the_loss_of_what_nobody_asks_about(self) -> None:
        keys = tuple(a_unit(f"the signing key of server {i} leaked in March") for i in range(6))
        lunch = tuple(a_unit(f"soup and salad {i} for lunch", role=Role.ASSISTANT) for i in range(5))
        talk = (*keys[:3], *lunch, *keys[3:])

        asked = finish(coherence(talk, keys, query="which signing key leaked"))

        assert asked > finish(coherence(talk, keys))

    def test_is_between_zero_and_one_whatever_the_vectors(self) -> None:
        assert finish(coherence(a_talk(2), a_talk(2, start=5), query="q"), opposite) == pytest.approx(1.0)
