"""The loss view: what a removed text said that a paraphrase destroys, and whether it still stands."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.compaction.accounts import MOST_LOSSES, losses
from health.compaction.terms.outcome import Loss
from health.compaction.terms.units import Role, Unit
from tests.health.compaction.builders import a_round, a_unit


def told(removed: str | Unit, *standing: str) -> dict[str, bool]:
    """Of each loss whether it still stands."""
    unit = a_unit(removed) if isinstance(removed, str) else removed
    return {loss.text: loss.kept for loss in losses([unit], [a_unit(text) for text in standing])}


def test_facts_and_binding_sentences_of_removed_text_are_listed_with_kind_and_source() -> None:
    unit = a_unit("Never push to main. ORD-48213 costs $1,299.00. Nice day.", id="m4")

    assert losses([unit], []) == (
        Loss(text="ORD-48213", kind="identifier", source_id="m4", kept=False),
        Loss(text="$1,299.00", kind="number", source_id="m4", kept=False),
        Loss(text="Never push to main.", kind="binding", source_id="m4", kept=False),
    )


def test_chinese_text_is_read_too() -> None:
    assert told("必须先测试。预算是三百元。", "预算三百元") == {"必须先测试。": False, "三百元": True}


@pytest.mark.parametrize(
    ("removed", "standing", "kept"),
    [
        ("ORD-48213", "see ORD-48213.", True),
        ("ORD-48213", "see ORD-482131.", False),
        ("$1,299.00", "it is $1299.00 now", True),
        ("45 %", "about 45% of it", True),
        ("45 %", "after 45 minutes", False),
        ("https://a.example/b/", "at https://A.example/b", True),
        ("user_id", "USER_ID", False),
        ("`git commit -m x`", "I ran git commit -m x and it worked", True),
        ("`git commit -m x`", "I ran git commit", False),
        ("ValueError: bad input here", "the log: 12:30 ValueError: bad input here, again", True),
        ("Never push to main.", "- [rule m1] Never push to main.", True),
        ("Never push to main.", "Never push anything to main.", False),
        ("Never push.", "You said: never push!", True),
        ("Never push.", "Never ask, but push.", False),
    ],
)
def test_what_stands_in_the_context_in_its_own_words_is_kept(removed: str, standing: str, *, kept: bool) -> None:
    assert set(told(removed, "Some talk.", standing).values()) == {kept}


def test_each_is_listed_once_the_users_first() -> None:
    tool = a_unit("Found ORD-1111 and ORD-2222.", role=Role.TOOL, id="t")
    user = a_unit("Look at ORD-2222 and ord-3333.", id="u")

    found = losses([tool, user, tool], [])

    assert [(loss.text, loss.source_id) for loss in found] == [("ORD-2222", "u"), ("ord-3333", "u"), ("ORD-1111", "t")]


def test_facts_in_calls_count_on_both_sides() -> None:
    asked, _ = a_round("Reading.", "fine")
    asked = replace(asked, calls=(replace(asked.calls[0], arguments='{"path": "src/app.py"}'),))

    assert [(loss.text, loss.kept) for loss in losses([asked], [])] == [("src/app.py", False)]
    assert losses([a_unit("src/app.py")], [asked])[0].kept


def test_code_is_no_binding_sentence() -> None:
    assert told("```\nnever push to main\n```") == {}


def test_the_list_is_bounded_and_what_still_stands_is_left_out_first() -> None:
    lost = a_unit(" ".join(f"ORD-{number}" for number in range(10_000, 10_000 + MOST_LOSSES)))
    kept = a_unit("KEY-11 KEY-12")

    found = losses([kept, lost], [kept])

    assert len(found) == MOST_LOSSES
    assert not any(loss.kept for loss in found)


def test_nothing_removed_nothing_lost() -> None:
    assert losses([], [a_unit("ORD-1111")]) == ()
    assert losses([a_unit("")], []) == ()


@given(
    st.lists(
        st.sampled_from(["Never push.", "ORD-1111", "必须测试。", "`git log -1`", "error: no such thing", "hello"])
    )
)
def test_nothing_is_lost_as_long_as_everything_stands(said: list[str]) -> None:
    units = [a_unit("\n".join(said))]

    assert all(loss.kept for loss in losses(units, units))
    assert not any(loss.kept for loss in losses(units, []))


def test_a_long_history_costs_time_in_proportion_to_its_length() -> None:
    """5,000 sentences against 5,000 messages: searched one in the other it would take minutes."""
    removed = [a_unit(f"Never touch module number {i} of ORD-{10_000 + i}.") for i in range(5000)]
    standing = [a_unit(f"Never touch module number {i} of ORD-{20_000 + i} again. " * 4) for i in range(5000)]

    assert len(losses(removed, standing)) == MOST_LOSSES
