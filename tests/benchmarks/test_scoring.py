"""The judge of compaction: what still stands counts only with its neighbours."""

from __future__ import annotations

import pytest

from benchmarks.devsets.case import Case, Message, Needed, Part
from benchmarks.scoring import broken_pairs, scored, tokens, verbatim_share

TOLD = "We talked for a while. The spare key hangs behind the blue door in the yard, as ever. Then we had tea."


def judged(*texts: str, limit: int = 1000, also: tuple[Part, ...] = ()) -> float:
    """The share kept by a result of these user messages, where the key's place is needed."""
    messages = [{"role": "user", "content": TOLD}, {"role": "user", "content": "Now?"}]
    case = Case("chat", "c", messages, "", (Needed((Part("behind the blue door", 0, also),), "told"),))
    result = [{"role": "user", "content": text} for text in texts]
    return scored(case, result, limit=limit, seconds=0).kept


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("The spare key hangs behind the blue door in the yard, as ever.", 1),
        ("… key hangs behind the blue door in the yard", 1),  # half of the neighbours are enough
        ("The spare key hangs behind\n the  blue door in the yard.", 1),  # blanks and line breaks do not matter
        ("key, behind the blue door, tea", 0),  # a bare list
        ("We talked for a while. behind the blue door Then we had tea.", 0),  # neighbours of another sentence
        ("The spare key hangs behind that blue door in the yard, as ever.", 0),  # other words for it
    ],
)
def test_what_is_needed_counts_with_half_of_its_neighbours(text: str, share: int) -> None:
    assert judged(text) == share


def test_a_result_over_the_limit_keeps_nothing() -> None:
    assert judged(TOLD, limit=10) == 0


def test_the_same_told_elsewhere_counts() -> None:
    assert judged("Now?", also=(Part("Now?", 1),)) == 1


def test_a_row_of_a_table_has_its_own_neighbours() -> None:
    # given two records whose ids are alike, and the colour of the second one is needed
    rows = '[{"id": "A1", "colour": "red", "size": 4}, {"id": "A7", "colour": "blue", "size": 9}]'
    case = Case("service", "c", [{"role": "user", "content": rows}], "", (Needed((Part('"id": "A7"', 0),), ""),))
    # when the record stays, or only its id among others
    whole = scored(
        case, [{"role": "user", "content": '{"id": "A7", "colour": "blue", "size": 9}'}], limit=99, seconds=0
    )
    bare = scored(case, [{"role": "user", "content": '["id": "A1", "id": "A7", "id": "A9"]'}], limit=99, seconds=0)
    # then only the record counts
    assert (whole.kept, bare.kept) == (1, 0)


def test_chinese_is_judged_by_its_characters() -> None:
    told = "昨天下雨了。钥匙挂在蓝色大门后面的院子里，一直都在。"
    case = Case("chat", "c", [{"role": "user", "content": told}], "", (Needed((Part("蓝色大门后面", 0),), ""),))
    assert scored(case, [{"role": "user", "content": "钥匙挂在蓝色大门后面的院子里"}], limit=99, seconds=0).kept == 1
    assert scored(case, [{"role": "user", "content": "蓝色大门后面；下雨"}], limit=99, seconds=0).kept == 0


def test_text_that_was_not_there_lowers_the_verbatim_share() -> None:
    originals = [{"role": "user", "content": "one two three four five six seven"}]
    assert verbatim_share(originals, originals) == 1
    assert verbatim_share(originals, [{"role": "user", "content": "one two three four nine ten"}]) == 1 / 3


CALL: Message = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}
RESULT: Message = {"role": "tool", "tool_call_id": "a", "content": "x"}


@pytest.mark.parametrize(
    ("messages", "broken"),
    [([CALL, {"role": "user", "content": "?"}], 1), ([CALL], 1), ([RESULT], 1), ([CALL, RESULT], 0)],
)
def test_a_call_or_a_result_without_the_other_is_broken(messages: list[Message], broken: int) -> None:
    assert broken_pairs(messages) == broken


def test_calls_are_counted_with_their_arguments() -> None:
    longer = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{} " * 20}}]}
    assert tokens([longer]) > tokens([CALL]) + 10
