"""What a reading made due falls with the context that it was of: compacted, undone, another LLM, course or version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dialogs.compaction.reads.context_state import context_state
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.compaction.writes.view_changes import undo
from dialogs.driver.writes.courses import start_course
from dialogs.management.commands.context_stats import lines, report_of
from dialogs.models import LLM, Course, Dialog, Message, RemediationPrompt
from dialogs.pages.writes import change_llm
from dialogs.transcript.reads.dialogs import dialog_meter
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import edit_message
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.driver.conftest import Play, ask, ask_and_drive, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
FULL = 95_000


@pytest.fixture
def full(dialog: Dialog, play: Play) -> Dialog:
    """A dialog that its provider has just reported to be nearly full; its LLM is offered tools from now on, so that it
    is to be asked to write reminders."""
    guard(dialog, limit=50_000)
    LLM.objects.update(tool_calling="off")
    a_history(dialog, pairs=40)
    play(said(FULL))
    ask_and_drive(dialog, "What does the rotor show?")
    LLM.objects.update(tool_calling="auto")
    return here(dialog)


def here(dialog: Dialog) -> Dialog:
    return dialog_to_drive(dialog.pk)


def compact(dialog: Dialog) -> None:
    perform(request(dialog=here(dialog), by=dialog.owner).pk, embedder="static")
    assert CompactionRun.objects.latest("id").status == "applied"


def undo_it(dialog: Dialog) -> None:
    compact(dialog)
    drive_until_idle(dialog)
    undo(dialog=here(dialog), run_id=CompactionRun.objects.latest("id").pk, by=dialog.owner)


def another_llm(dialog: Dialog) -> None:
    larger = LLM.objects.create(provider=dialog.llm.provider, model_id="large", context_length=1_000_000)
    change_llm(dialog=here(dialog), llm=larger)


def another_window(dialog: Dialog) -> None:
    LLM.objects.update(context_length=90_000)


CHANGES: dict[str, Callable[[Dialog], None]] = {
    "compacted": compact,
    "undone": undo_it,
    "another LLM": another_llm,
    "a new course": lambda dialog: start_course(dialog=here(dialog)) and None,
}


def due(dialog: Dialog) -> tuple[str, str]:
    leaf = here(dialog).current_leaf
    assert leaf is not None
    course = Course.objects.get(pk=leaf.course_id)
    return course.due, course.level


@pytest.mark.parametrize("how", CHANGES)
def test_what_was_due_falls_with_its_context(full: Dialog, how: str) -> None:
    before = due(full)

    CHANGES[how](full)

    assert before[1] == "critical"
    assert due(full) == ("", "healthy")


def test_saying_the_last_message_anew_leaves_the_reading_behind(full: Dialog, play: Play) -> None:
    play({"error": {"code": "unauthorized", "message": "no"}})
    asked = Message.objects.get(content="What does the rotor show?")
    edit_message(dialog=here(full), message=asked, content="And now?")

    shown = dialog_meter(here(full))

    assert (shown.level, shown.stale) == ("unknown", "other_branch")


@pytest.mark.parametrize(
    ("how", "stale", "shown"),
    [
        ("compacted", "compacted", FULL),
        ("another LLM", "llm_changed", None),
        ("a new course", "new_course", FULL),
        ("another window", "other_window", FULL),
    ],
)
def test_page_and_programs_keep_the_old_number_and_know_no_level_until_the_next_report(
    full: Dialog, play: Play, how: str, stale: str, shown: int | None
) -> None:
    assert dialog_meter(full).level == "critical"

    (CHANGES | {"another window": another_window})[how](full)

    meter, told = dialog_meter(here(full)), context_state(here(full)).health
    assert told is not None
    assert (meter.level, meter.stale, meter.prompt_tokens) == ("unknown", stale, shown)
    assert (told.level, told.stale, told.prompt_tokens) == ("unknown", stale, FULL)
    assert f"Measured: 95,000 of 100,000 prompt tokens, unknown ({stale})." in "\n".join(lines(report_of(here(full))))

    play(said(900))
    ask(here(full), "And now?")
    drive_until_idle(full)
    meter = dialog_meter(here(full))
    assert (meter.level, meter.stale, meter.prompt_tokens) == ("healthy", "", 900)


def test_a_request_that_is_compacted_first_carries_no_order_to_write_reminders(full: Dialog, play: Play) -> None:
    requests = play(said(900))
    guard(full, limit=2_000)

    ask(here(full), "And now?")
    drive_until_idle(full)

    assert CompactionRun.objects.get().status == "applied"
    assert "clear_mind" not in str(requests()[0]["messages"])
    assert not RemediationPrompt.objects.exclude(notice="").exists()
