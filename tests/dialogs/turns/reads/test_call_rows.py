"""Tool calls as they are shown: one line of arguments, the beginning of the result, what the model was told."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.models import Course, Dialog, Message
from dialogs.transcript.reads.tool_calls import CallRow, call_rows, whole_result
from dialogs.turns.reads.remediation import RemediationStatus, remediation_status
from dialogs.turns.writes.messages import post_message
from dialogs.turns.writes.tool_calls import add_results
from tests.builders import a_call, a_course, an_answer


@pytest.fixture
def answer(dialog: Dialog) -> Message:
    post_message(dialog=dialog, content="Hello")
    return an_answer(dialog)


def shown(answer: Message, **fields: Any) -> CallRow:
    a_call(answer, **fields)
    return call_rows([answer.pk])[answer.pk][-1]


def test_calls_stand_in_their_order(answer: Message) -> None:
    for name in ("one", "two", "three"):
        a_call(answer, name=name)

    assert [row.call.name for row in call_rows([answer.pk])[answer.pk]] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("arguments", "short"),
    [
        ('{"path": "notes.txt", "lines": 3}', "path: notes.txt, lines: 3"),
        ('{"choices": ["a", "b"]}', 'choices: ["a", "b"]'),
        ('{"text": "one\\n\\n  two"}', "text: one two"),
        ("{}", ""),
        ("", ""),
        ("[1, 2]", "[1, 2]"),
        ('{"broken": ', '{"broken":'),
        ('{"word": "过敏"}', "word: 过敏"),
        ('{"long": "' + "x" * 500 + '"}', "long: " + "x" * 114 + "…"),
        ("[" * 100_000, "[" * 120 + "…"),
    ],
)
def test_arguments_fit_on_a_line(answer: Message, arguments: str, short: str) -> None:
    assert shown(answer, arguments=arguments).short_arguments == short


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [('{"a": "过敏"}', '{\n  "a": "过敏"\n}'), ('{"broken": ', '{"broken": '), ("null", "null"), ("", "")],
)
def test_arguments_that_are_json_are_indented(answer: Message, arguments: str, whole: str) -> None:
    assert shown(answer, arguments=arguments).arguments == whole


@pytest.mark.parametrize("arguments", ['{"a": "\\ud83d"}', '{"a": "\\u0000"}', "[" * 700 + "]" * 700])
def test_whatever_a_model_writes_can_be_sent_to_a_browser(answer: Message, arguments: str) -> None:
    row = shown(answer, arguments=arguments)

    for text in (row.short_arguments, row.arguments):
        assert "\0" not in text
        text.encode()


def test_the_result_is_the_same_before_and_after_it_became_a_message(dialog: Dialog, answer: Message) -> None:
    row = shown(answer, status="done", result="Twelve letters")
    assert (row.result, row.is_cut) == ("Twelve letters", False)

    dialog.refresh_from_db()
    add_results(dialog)

    (row,) = call_rows([answer.pk])[answer.pk]
    assert (row.result, row.withheld) == ("Twelve letters", "")
    assert whole_result(dialog, call_id=row.call.pk) == "Twelve letters"


# Where remediation stands, as a person sees it.


def seen(dialog: Dialog, **course: Any) -> RemediationStatus:
    Course.objects.filter(dialog=dialog).update(**course)
    dialog.refresh_from_db()
    status = remediation_status(dialog, takes_notes=True)
    assert status is not None
    return status


def prompted(dialog: Dialog, *, curated: bool | None) -> None:
    post_message(dialog=dialog, content="Hello")
    message = an_answer(dialog)
    dialog.remediation_prompts.create(message=message, course=message.course, level="caution", curated=curated)


@pytest.mark.parametrize(("generations", "next_in"), [(1, 10), (4, 7), (10, 1), (11, 10), (21, 10)])
def test_prompts_of_caution_fall_on_1_11_21(dialog: Dialog, generations: int, next_in: int) -> None:
    assert seen(dialog, level="caution", caution_generations=generations).next_prompt_in == next_in


def test_the_cadence_is_the_llms(dialog: Dialog) -> None:
    dialog.llm.caution_remediation_cadence_generations = 3
    dialog.llm.save()

    status = seen(dialog, level="caution", caution_generations=2)

    assert (status.cadence, status.next_prompt_in) == (3, 2)


def test_compliance_is_counted_in_the_current_course(dialog: Dialog) -> None:
    prompted(dialog, curated=True)
    a_course(dialog)
    for curated in (True, False, False, None):
        prompted(dialog, curated=curated)

    status = seen(dialog)

    assert (status.course_number, status.prompts, status.curated_yes, status.curated_no) == (2, 4, 1, 2)
