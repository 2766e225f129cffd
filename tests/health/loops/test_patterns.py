"""What is a circle, and what only looks like one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.loops import MOST_STEPS, AnswerStep, EndedCall, LoopSign, SignKind, find_loop

READ = EndedCall(name="read_file", arguments='{"path": "a"}', outcome="Hello")
REFUSED = EndedCall(name="write_file", arguments='{"path": "a"}', outcome="Permission denied", failed=True)
SENTENCE = "I have looked at the boiler again, and its pressure is as it was when I looked at it before this."


def each(*calls: EndedCall) -> list[AnswerStep]:
    """One answer for each call."""
    return [AnswerStep(calls=(call,)) for call in calls]


def saying(*texts: str) -> list[AnswerStep]:
    return [AnswerStep(text=text) for text in texts]


def long(length: int, sign: str = "x") -> str:
    return sign * length


def kinds(steps: list[AnswerStep], *, over_hits: int = 0) -> list[SignKind]:
    found = find_loop(steps, over_hits=over_hits)
    return [seen.kind for seen in found.seen] if found else []


# --- Equal calls ------------------------------------------------------------------------------


def test_three_equal_calls_are_a_circle_and_two_are_none_without_an_over_hit() -> None:
    found, over = find_loop(each(READ, READ, READ)), find_loop(each(READ, READ), over_hits=1)

    assert found is not None
    assert over is not None
    assert found.seen == (LoopSign(kind=SignKind.CALLS, count=3, tool="read_file"),)
    assert (over.seen[0].count, over.over_hits) == (2, 1)
    assert find_loop(each(READ, READ)) is None
    # Over-hits alone are no circle.
    assert find_loop(each(READ, replace(READ, arguments="{}")), over_hits=9) is None
    assert find_loop([], over_hits=9) is None


def test_a_circle_of_several_calls_is_one() -> None:
    look = replace(READ, name="list_files")

    found = find_loop(each(READ, look, READ, look, READ, look))

    assert found is not None
    assert [(seen.tool, seen.count) for seen in found.seen] == [("list_files", 3)]


def test_asking_until_the_answer_is_another_is_progress() -> None:
    polls = [replace(READ, outcome=f"{percent} %") for percent in range(20)]

    assert kinds(each(*polls)) == []


def test_equal_calls_between_which_something_was_achieved_are_no_circle() -> None:
    passed = EndedCall(name="run_tests", arguments="{}", outcome="All tests passed.")
    edits = [replace(READ, name="edit_file", arguments=str(number)) for number in range(6)]

    steps = [step for edit in edits for step in each(edit, passed)]

    assert kinds(steps) == []
    assert kinds(steps, over_hits=1) == []


def test_a_circle_that_the_agent_has_left_is_none() -> None:
    assert kinds(each(READ, READ, READ, READ, replace(READ, outcome="Changed"))) == []


def test_what_is_asked_side_by_side_is_asked_once() -> None:
    assert kinds([AnswerStep(calls=(READ, READ, READ))]) == []
    assert kinds([AnswerStep(calls=(READ, READ))] * 3) == [SignKind.CALLS]


@pytest.mark.parametrize("other", [{"arguments": "{}"}, {"name": "read"}])
def test_other_arguments_and_other_tools_are_other_calls(other: dict[str, str]) -> None:
    assert kinds(each(READ, replace(READ, **other), READ, replace(READ, **other))) == []


# --- Equal errors -----------------------------------------------------------------------------


def test_the_same_complaint_three_times_is_a_circle_whatever_was_asked() -> None:
    tries = [replace(REFUSED, arguments=str(number)) for number in range(3)]

    found = find_loop(each(*tries))

    assert found is not None
    assert found.seen == (LoopSign(kind=SignKind.ERRORS, count=3, tool="write_file"),)


def test_other_complaints_are_none() -> None:
    assert kinds(each(*(replace(REFUSED, outcome=str(number)) for number in range(9)))) == []


def test_a_call_that_fails_is_no_progress() -> None:
    failing = replace(READ, failed=True, outcome="Away")

    assert kinds(each(READ, READ, failing, READ)) == [SignKind.CALLS]


# --- Answers ----------------------------------------------------------------------------------


def test_three_answers_alike_are_a_circle_with_the_least_likeness() -> None:
    found = find_loop(saying(SENTENCE, SENTENCE.replace("boiler", "heater"), SENTENCE))

    assert found is not None
    [seen] = found.seen
    assert (seen.kind, seen.count) == (SignKind.ANSWERS, 3)
    assert 85 < seen.numbers[0] < 100


@pytest.mark.parametrize(
    "steps",
    [
        saying("ok", "ok", "ok", "Done.", "Done.", "Done."),  # short answers say nothing
        saying(SENTENCE, SENTENCE, SENTENCE, long(100, "y")),  # only the newest count
        # Beside calls that bring something.
        [AnswerStep(text=SENTENCE, calls=(replace(READ, outcome=str(number)),)) for number in range(5)],
    ],
)
def test_answers_alike_that_are_short_not_the_newest_or_beside_progress_are_none(steps: list[AnswerStep]) -> None:
    assert kinds(steps) == []


def test_two_answers_alike_are_enough_when_the_context_was_over_its_limit() -> None:
    assert kinds(saying(SENTENCE, SENTENCE)) == []
    assert kinds(saying(SENTENCE, SENTENCE), over_hits=1) == [SignKind.ANSWERS]


def test_five_answers_each_shorter_than_the_last_are_a_circle() -> None:
    texts = [long(length, sign) for length, sign in zip((500, 400, 300, 200, 100), "abcde", strict=True)]

    found = find_loop(saying(*texts))

    assert found is not None
    assert found.seen == (LoopSign(kind=SignKind.SHRINKING, count=5, numbers=(500, 100)),)
    assert kinds(saying(*texts[1:])) == []
    assert kinds(saying(*texts[1:]), over_hits=1) == [SignKind.SHRINKING]


@pytest.mark.parametrize(
    "lengths",
    [
        (190, 150, 100, 50, 9),  # never long
        (500, 480, 460, 440, 420),  # hardly shorter
        (500, 400, 400, 300, 200),  # not each time
        (100, 200, 300, 400, 500),
    ],
)
def test_other_lengths_are_none(lengths: tuple[int, ...]) -> None:
    assert kinds(saying(*(long(length, "abcde"[at]) for at, length in enumerate(lengths)))) == []


# --- Laws -------------------------------------------------------------------------------------

CALLS = st.builds(
    EndedCall,
    name=st.sampled_from("ab"),
    arguments=st.sampled_from("12"),
    outcome=st.sampled_from("xyz"),
    failed=st.booleans(),
)
STEPS = st.lists(
    st.builds(
        AnswerStep, text=st.sampled_from(["", "ok", SENTENCE, long(300), long(90)]), calls=st.lists(CALLS).map(tuple)
    ),
    max_size=50,
)


@given(STEPS)
def test_an_over_hit_only_ever_strengthens(steps: list[AnswerStep]) -> None:
    assert set(kinds(steps)) <= set(kinds(steps, over_hits=1))


@given(STEPS)
def test_whoever_has_just_made_progress_repeats_nothing(steps: list[AnswerStep]) -> None:
    novel = AnswerStep(calls=(EndedCall(name="new", arguments="", outcome="new"),))

    assert kinds([*steps, novel], over_hits=1) == []


@given(STEPS)
def test_only_the_newest_steps_are_looked_at(steps: list[AnswerStep]) -> None:
    assert find_loop(steps) == find_loop(steps[-MOST_STEPS:])


@given(STEPS, st.integers(0, 3))
def test_a_finding_counts_what_is_there(steps: list[AnswerStep], over_hits: int) -> None:
    found = find_loop(steps, over_hits=over_hits)

    assert found is None or all(2 <= seen.count <= min(len(steps), MOST_STEPS) for seen in found.seen)


# --- What hides a circle ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "outcome",
    [
        "content [{n} ms]",
        "content in 0.{n}s",
        "Tue Nov 24 20:24:{n} UTC: content",
        "2026-11-24T20:24:{n}.123Z content",
        "content at 1764{n}1234",
        "内容，用时{n}毫秒",
    ],
)
@pytest.mark.parametrize("failed", [False, True])
def test_a_time_that_a_result_tells_makes_no_other_result(outcome: str, failed: bool) -> None:
    steps = each(*(replace(READ, outcome=outcome.format(n=number), failed=failed) for number in range(10, 14)))

    assert kinds(steps) == [SignKind.ERRORS if failed else SignKind.CALLS]


@pytest.mark.parametrize("outcome", ["line {n}:7 is wrong", "{n} % done", "{n} files", "version 1.{n}"])
def test_other_numbers_do(outcome: str) -> None:
    assert kinds(each(*(replace(READ, outcome=outcome.format(n=number)) for number in range(10, 14)))) == []


def test_a_sentence_said_six_times_is_a_circle_however_short() -> None:
    sentence = "I will now continue with the next step."

    assert kinds(saying(*[sentence] * 6)) == [SignKind.ANSWERS]
    assert kinds(saying(*[sentence] * 5)) == []


def test_chinese_says_as_much_with_fewer_characters() -> None:
    sentence = "好的，我明白了。让我再检查一下这个文件的内容，然后告诉你结果如何，请稍等片刻。"

    assert kinds(saying(*[sentence] * 3)) == [SignKind.ANSWERS]
    assert kinds(saying(*["好的。"] * 12)) == []
