"""Importance by the plan's table: what a message is decides its score, each factor once, between 0 and 1."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from health.compaction.reading.importance import importance, importances, mentions_error
from health.compaction.terms.units import Call, Kind, Role
from tests.health.compaction.builders import a_round, a_unit


def said(text: str, *, call: str = "", arguments: str = "{}") -> float:
    calls = (Call(id="c", name=call, arguments=arguments),) if call else ()
    return importance(a_unit(text, role=Role.ASSISTANT, calls=calls))


def answered(text: str, *, tool: str = "read_file", failed: bool | None = None) -> float:
    return importance(a_unit(text, role=Role.TOOL, answers="c", failed=failed), tool=tool)


@pytest.mark.parametrize("text", ["Where shall we have lunch?", "I am done with my coffee"])
def test_a_plain_message_has_the_base_score_though_a_user_says_done(text: str) -> None:
    assert importance(a_unit(text)) == 0.5


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: cannot open the door",
        "An exception was raised",
        "Traceback (most recent call last):",
        "raised KeyError",
        "2 tests failed",
        "エラーが発生しました",
        "出现错误，请重试",
        "上传失败",
        "0 errors in the first run, but 1 error in the second",
        "Error rate: 0.5%",
        "Error rate: 0,05 %",
        "errors: 07",
        "Error: no such file",
        "Error: null pointer",
        "Error: 0 bytes received",
        "error 0x80070005",
        "错误数：3",
        "错误数：0.5",
        "错误：无法打开文件",
        "错误：没有找到文件",
        "エラー率：0.2%",
        "Were there errors? Nobody knows.",
    ],
)
def test_a_told_error_raises_the_score(text: str) -> None:
    assert answered(text) == 0.8


@pytest.mark.parametrize(
    "text",
    [
        "0 errors",
        "Found no errors",
        "finished without any errors",
        "errors: 0, warnings: 3",
        '{"error": null}',
        "没有错误",
        "エラーはありません",
        "0 failed",
        "エラーは発生しませんでした",
        "没有出现错误",
        "The build hasn't failed",
        "Error rate: 0.0%",
        "Failed: 0 of 12",
        "errors: 0 in the last run",
        "error: 0",
        "the failure rate is 0 %",
        "Errors found: none",
        "error count = 0",
        "Exceptions in this run: 0,00 %",
        "| Errors | 0 |",
        "Were there any errors? No.",
        "Failed? No",
        "passed 12, failed 0",
        "有错误吗？没有。",
        "错误数：0",
        "错误：无",
        "失败次数为0",
        "错误率：0.0%",
        "エラーの数は0",
        "エラー件数：0件",
        "エラー：なし",
        # not the word
        "terror and mirrors",
        "unerring",
    ],
)
def test_a_denied_error_and_a_similar_word_do_not(text: str) -> None:
    assert answered(text) == 0.5


def test_ten_errors_are_not_zero_errors() -> None:
    assert mentions_error("10 errors")
    assert mentions_error("10个错误")


def test_the_status_of_a_tool_goes_before_its_words() -> None:
    assert answered("exit", failed=True) == 0.8
    assert answered("a page about the word error", failed=False) == 0.5


@pytest.mark.parametrize(
    "text",
    [
        "All done.",
        "The task is completed",
        "作業は完了です",
        "任务已完成",
        "Finished? Yes.",
        "Done. Shall I go on?",
        "I have finished the report, shall I send it?",
        "100 % done",
        "The second half is done",
        "完成了吗？是的，已完成",
        "- [x] report finished",
    ],
)
def test_a_completion_raises_the_score(text: str) -> None:
    assert said(text) == said("", call="done") == 0.8


@pytest.mark.parametrize(
    ("thought", "score"),
    [
        ({"phase": "planning"}, 0.7),
        ({"phase": "executing"}, 0.5),
        # A word that only holds that one.
        *(({"thought": thought}, 0.5) for thought in ("I need an explanation", "an airplane", "the planet")),
    ],
)
def test_planning_raises_the_score(thought: dict[str, str], score: float) -> None:
    assert said("", call="think", arguments=json.dumps(thought)) == score
    assert said("## Plan\n1. look") == said("计划：先看") == 0.7


@pytest.mark.parametrize(
    "text",
    [
        "It is not done",
        "not yet finished",
        "尚未完成",
        "I haven't done that.",
        "The build hasn't finished.",
        "That couldn’t be completed",
        "It cannot be completed",
        "Two steps are still to be done",
        "还没完成",
        "まだ完了していません",
        "完了できませんでした",
        "Finished? No.",
        "Is the task that you gave me done?",
        "done: false",
        '{"completed": 0}',
        "Completed: 40 %",
        "80% done",
        "Nothing is done",
        "almost finished",
        "half-finished",
        "Once it is completed, I shall tell you",
        "- [ ] report finished",
        "完成了吗？没有。",
        "完成：否",
        "已完成：0",
        "完成率：40%",
        "几乎完成",
        "完了しましたか？",
        "完了：いいえ",
    ],
)
def test_what_is_not_done_is_no_completion(text: str) -> None:
    assert said(text) == 0.5


def test_a_screenshot_raises_the_score_a_little() -> None:
    assert answered("(image)", tool="screenshot") == 0.6
    assert importance(a_unit("look", image_tokens=100)) == 0.6


@pytest.mark.parametrize("tool", ["elementsJson", "webElements"])
def test_what_can_be_fetched_again_counts_less(tool: str) -> None:
    assert answered("[]", tool=tool) == 0.4


def test_each_factor_counts_once() -> None:
    assert answered("error\nerror\nTraceback\nfailed") == 0.8


def test_the_score_never_exceeds_one() -> None:
    assert said("## Plan: done after an error", call="done") == 1.0


def test_the_tool_is_found_by_its_round_though_call_ids_repeat() -> None:
    first = a_round("", "[]", id="r1")
    second = a_round("", "[]", id="r2")
    units = [*named(first, "elementsJson"), *named(second, "read_file")]

    scores = importances(units)

    assert (scores["r1-t0"], scores["r2-t0"]) == (0.4, 0.5)


def named(cut: tuple, tool: str) -> list:

    asked, result = cut
    return [replace(asked, calls=(Call(id="call_0", name=tool, arguments="{}"),)), replace(result, answers="call_0")]


def test_a_summary_stands_for_many_and_weighs_most() -> None:
    assert importances([a_unit("history", id="s", kind=Kind.SUMMARY)]) == {"s": 1.0}


def test_ten_megabytes_are_judged_by_their_ends() -> None:
    begun = time.perf_counter()

    score = importance(a_unit("no error" + "a" * 10_000_000 + "\nFATAL"))

    assert score == 0.8
    assert time.perf_counter() - begun < 0.5
