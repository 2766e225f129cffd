"""Where remediation stands, as a person sees it."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.models import Course, Dialog
from dialogs.turns.reads.remediation import RemediationStatus, remediation_status
from dialogs.turns.writes.messages import post_message
from tests.builders import a_course, an_answer


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
