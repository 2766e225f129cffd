"""What a passage is worth: who said it, how long it is, and whether its message matches the task."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from health.compaction.choosing.worth import BREVITY_MOST, BRIEF_CHARS, PRIOR, Matches, Piece, brevity, matches, priors
from health.compaction.reading.features import Features
from health.compaction.terms.ports import Answer, Embed, Need
from health.compaction.terms.units import Role
from tests.health.compaction.builders import Listening, a_state, a_unit, finish, like_marked, silence

USER, ASSISTANT, TOOL = Role.USER, Role.ASSISTANT, Role.TOOL


def a_piece(text: str = "heron", role: Role = USER, source_id: str = "", *, tokens: int = 10, chars: int = 50) -> Piece:
    return Piece(text, role, source_id or text, tokens, chars)


def matched(*pieces: Piece, task: str = "", answer: Callable[[Need], Answer] = silence) -> Matches:
    """What of these pieces matches the task."""
    texts = {piece.source_id: piece.text for piece in pieces}
    state = a_state(*(a_unit(text, id=name) for name, text in texts.items()), task=task)
    features = Features([piece.text for piece in pieces], from_tool=[False] * len(pieces))
    return finish(matches(pieces, features, state), answer)  # type: ignore[no-any-return]


def embedded(*pieces: Piece, task: str) -> Embed:
    listening = Listening(like_marked)
    matched(*pieces, task=task, answer=listening)
    (need,) = listening.needs
    assert isinstance(need, Embed)
    return need


class TestWhoSaidIt:
    def test_counts_by_itself_where_all_say_as_much(self) -> None:
        assert priors([a_piece(role=role) for role in PRIOR]) == PRIOR

    def test_counts_more_the_less_they_say(self) -> None:
        found = priors([a_piece(tokens=1), *[a_piece(role=TOOL, tokens=1)] * 3])

        assert found[USER] / found[TOOL] == pytest.approx(PRIOR[USER] / PRIOR[TOOL] * 3**0.3)

    def test_counts_as_the_assistants_where_nothing_is_known_of_a_role(self) -> None:
        found = priors([a_piece(role=ASSISTANT), a_piece(role=Role.SYSTEM)])

        assert found[ASSISTANT] == found[Role.SYSTEM]


@pytest.mark.parametrize(
    ("role", "chars", "worth"),
    [
        (USER, BRIEF_CHARS // 2, 1),
        (TOOL, BRIEF_CHARS * 2, 1),
        (TOOL, BRIEF_CHARS // 2, 2),
        (TOOL, 0, BREVITY_MOST),
    ],
)
def test_a_short_result_is_worth_more(role: Role, chars: int, worth: float) -> None:
    assert brevity(a_piece(role=role, chars=chars)) == worth


class TestWhatMatchesATask:
    OTHERS = (a_piece("a heron stood still"), a_piece("rain again today"))

    def test_is_what_says_its_words_and_nothing_else(self) -> None:
        found = matched(a_piece("the flat on Tanner Row"), *self.OTHERS, task="Which flat on Tanner Row?")

        assert found.messages[0] == [0]
        assert {at for one in found.messages for at in one} == {0}
        assert found.asks == 1

    def test_is_of_a_long_message_also_the_one_part_that_says_all_of_it(self) -> None:
        parts = a_piece("so it was", source_id="a"), a_piece("the flat on Tanner Row", source_id="a")

        assert matched(*parts, *self.OTHERS, task="Which flat on Tanner Row?").messages == [[0, 1], [1]]

    @pytest.mark.parametrize("others", [(), (a_piece("a heron ~0.2"),)])
    def test_is_also_what_is_nearest_in_meaning(self, others: tuple[Piece, ...]) -> None:
        said = a_piece("the flat on Tanner Row"), a_piece("an attic ~0.9"), *others

        assert matched(*said, task="Which flat on Tanner Row?", answer=like_marked).messages == [[0], [1], [0]]

    def test_is_told_where_words_find_everything_and_nothing_is_embedded(self) -> None:
        said = a_piece("the flat on Tanner Row"), a_piece("a flat in Porto")

        assert matched(*said, task="Which flat, Tanner or Porto?", answer=like_marked).messages


class TestWhatIsEmbedded:
    def test_is_each_part_of_the_task_and_what_no_word_finds_but_no_result(self) -> None:
        said = a_piece("Tanner Row"), a_piece("a stone lay there"), a_piece("a heron", TOOL)

        need = embedded(*said, task="Who lives in Tanner Row? And the boat.")

        assert need.texts == ("Who lives in Tanner Row", "And the boat", "a stone lay there")
        assert need.queries == 2

    def test_is_a_share_of_all_what_says_most_for_its_tokens_first(self) -> None:
        said = [a_piece(f"Marta saw heron {at}", tokens=100 * at) for at in range(1, 10)]

        need = embedded(a_piece("Tanner Row"), *said, task="Tanner Row")

        # 30 % of 4,510 tokens.
        assert need.texts[1:] == tuple(piece.text for piece in said[:4])
