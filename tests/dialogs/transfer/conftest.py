"""A dialog with everything in it that a file must carry."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dialogs.models import (
    AutonomousRun,
    Course,
    Dialog,
    Generation,
    Message,
    MessageMark,
    Question,
    QueuedMessage,
    RemediationPrompt,
    Reminder,
    ToolCall,
    ViewChange,
)
from dialogs.transcript.standing_rules import StandingRule, dump
from dialogs.transcript.writes.dialog_row import BLOB_KEYS
from dialogs.turns.writes.events import log
from health.compaction.snapshot import as_json, begun
from health.models import CompactionRun, ContextEvent
from health.monitor.levels import Configured, Usage, UsageUnavailable
from health.services import record_reading
from tests.builders import keep_blob
from tests.dialogs.transfer.compactions import add_compactions

# Long ago, so that a date lost on the way is noticed.
AGO = timezone.now() - timedelta(days=400)
FENCED = "Here:\n\n```python\nprint('¡hola! 你好 🙂')\n```"


class Writer:
    """Adds messages and generations to a dialog, one after the other."""

    def __init__(self, dialog: Dialog) -> None:
        self.dialog = dialog
        self.course = Course.objects.get(dialog=dialog)
        self.seq = self.calls = 0

    def say(
        self, content: str, *, parent: Message | None, role: str = "user", origin: str = "", **fields: Any
    ) -> Message:
        self.seq += 1
        return Message.objects.create(
            dialog=self.dialog, course=self.course, seq=self.seq, parent=parent, turn=1, role=role,
            origin=origin or {"user": "typed", "assistant": "agent"}[role], content=content, **fields,
        )  # fmt: skip

    def use(self, name: str, caller: Message, *, after: Message, result: str, **fields: Any) -> ToolCall:
        """A closed call, with its result as the message after this one."""
        position = ToolCall.objects.filter(message=caller).count()
        call_id = f"call_{position}"
        message = self.say(
            result, parent=after, role="tool", origin="tool", parts={"tool_call_id": call_id, "withheld": "Too large."}
        )
        return ToolCall.objects.create(
            message=caller, position=position, call_id=call_id, name=name, result_message=message,
            **({"status": "done", "arguments": '{"x": 1}', "started_at": AGO, "finished_at": AGO} | fields),
        )  # fmt: skip

    def ask(self, call: ToolCall, **fields: Any) -> Question:
        return Question.objects.create(dialog=self.dialog, tool_call=call, text="Which *one*?", **fields)

    def call(self, prompt: Message, *, usage: Usage | UsageUnavailable, **fields: Any) -> Generation:
        self.calls += 1
        counts = {} if isinstance(usage, UsageUnavailable) else dict(vars(usage))
        sent = {"messages": [prompt.pk], "instructions": keep_blob("You help."), "options": {"max_output_tokens": 9}}
        sent |= {key: keep_blob(text) for key, text in fields.pop("texts", {}).items()}
        return Generation.objects.create(
            dialog=self.dialog, course=self.course, number=self.calls, turn=1, llm=self.dialog.llm,
            llm_name=self.dialog.llm.slug, prompt_leaf=prompt, fencing_token=7, manifest=sent, **counts, **fields,
        )  # fmt: skip

    def judge(self, generation: Generation, usage: Usage | UsageUnavailable) -> None:
        limits = Configured(context_length=1000, optimal_max_tokens=500)
        record_reading(generation_id=generation.pk, usage=usage, configured=limits, window_source="admin")


@pytest.fixture
def full_dialog(dialog: Dialog) -> Dialog:
    """A question asked twice, a failed try, a caution, an unknown, a stopped answer, one message waiting."""
    write = Writer(dialog)
    first = write.say("What is in the box?", parent=None)
    second = write.say("What is *really* in the box?", parent=None)
    write.call(second, usage=UsageUnavailable(), status="failed", error_code="rate_limited", error_message="429")
    answer = write.say(FENCED, parent=second, role="assistant", parts={"reasoning": "Hm."})
    usage = Usage(prompt_tokens=600, completion_tokens=20, total_tokens=620, cached_tokens=None)
    write.judge(write.call(second, usage=usage, status="finished", message=answer, usage_raw={"n": 1}), usage)
    cut = write.say("A cat, and", parent=first, role="assistant", cut_short=True)
    silent = write.call(first, usage=UsageUnavailable(), status="stopped", message=cut)
    write.judge(silent, UsageUnavailable())
    QueuedMessage.objects.create(dialog=dialog, content="And then?")
    dialog.title, dialog.titled_by_person = "The box", True
    dialog.current_leaf, dialog.last_seq = answer, write.seq
    dialog.save()
    Message.objects.update(created_at=AGO)
    return dialog


@pytest.fixture
def working_dialog(full_dialog: Dialog) -> Dialog:
    """The full dialog gone on: two rounds of calls, prompts, a second course, a notebook, a run, compactions."""
    write = Writer(full_dialog)
    write.seq, write.calls = full_dialog.last_seq, 3
    asked = write.say("Look inside.", parent=full_dialog.current_leaf)
    first = write.say("I look.", parent=asked, role="assistant")
    seen = write.use("read_file", first, after=first, result="```\na cat\n```", idempotent=True)
    told = write.use("ask_human", first, after=seen.result_message, result="The left one.")
    write.ask(told, choices=["left", "right"], status="answered", answer="The left one.", answered_at=AGO)
    prompted = write.say("[System notice]", parent=told.result_message, origin="remediation")
    second = write.say("", parent=prompted, role="assistant")
    unasked = write.use("ask_human", second, after=second, result="Withdrawn.", status="withdrawn")
    open_question = write.ask(unasked, status="withdrawn", answered_at=AGO)
    cleared = write.use("clear_mind", second, after=unasked.result_message, result="Done.", status="interrupted")
    add_notebook(full_dialog, write.course, asked, prompted)
    carried = {"reminders": [1], "taskdoc": True, "request": asked.pk, "questions": [open_question.pk]}
    write.course, write.calls = Course.objects.create(
        dialog=full_dialog, number=2, opened_by="agent", carried=carried, level="caution", caution_generations=4,
        due="caution",
    ), 0  # fmt: skip
    opening = write.say("Course 2 begins.", parent=cleared.result_message, origin="handover")
    answer = write.say("On I go.", parent=opening, role="assistant")
    texts = {key: f"The {key}." for key in BLOB_KEYS if key != "instructions"}
    made = write.call(opening, usage=UsageUnavailable(), status="finished", message=answer, texts=texts)
    add_compactions(full_dialog, made)
    add_events(full_dialog, opening)
    rules = [StandingRule(text="Feed the cat.", holds=True, at=AGO), StandingRule(text="No milk.", holds=False, at=AGO)]
    full_dialog.standing_rules = dump(rules)
    return finished(full_dialog, answer)


def add_events(dialog: Dialog, message: Message) -> None:
    """A task, and an event with everything that one can have beside one with nothing."""
    task = begun("Find the cat").acted("read_file").observed("It is in the box").shown(0).acted("ask_human")
    dialog.task_snapshot = as_json(task)
    run = CompactionRun.objects.filter(dialog=dialog).first()
    facts = {
        "course": message.course_id,
        "message": message.pk,
        "turn": 1,
        "compactions": 3,
        "trigger": "pre_request",
        "cause": "Nothing came.",
        "reason": "What must stay is too much.",
    }
    log("TOKEN_LIMIT_EXCEEDED", dialog, run=run, estimated=5200, limit=5000, **facts)
    log("PROVIDER_OVERFLOW", dialog)


def add_notebook(dialog: Dialog, course: Course, typed: Message, inserted: Message) -> None:
    fields = {"dialog": dialog, "course": course}
    Reminder.objects.create(
        **fields, number=1, position=2, content="The cat\nsleeps.", author="agent", is_continuation=True
    )
    Reminder.objects.create(
        **{**fields, "course": None}, number=2, position=1, content="Removed.", author="person", removed_at=AGO
    )
    RemediationPrompt.objects.create(
        **fields, message=typed, level="critical", remaining=3, notice="[System notice] 3 more", curated=True
    )
    RemediationPrompt.objects.create(**fields, message=inserted, level="caution")
    AutonomousRun.objects.create(
        dialog=dialog, goal="Find the cat", max_generations=30, generations=7, first_course=1, ended_at=AGO,
        ended_by="done", summary="Found.",
    )  # fmt: skip
    course.level, course.countdown_turns, course.due = "critical", 2, "critical"
    course.save()


def finished(dialog: Dialog, leaf: Message) -> Dialog:
    dialog.taskdoc, dialog.work_language, dialog.compaction = "# The box\n\nFind out.", "zh-hans", "off"
    dialog.own_tools = "off"
    dialog.current_leaf, dialog.last_seq = leaf, leaf.seq
    dialog.save()
    for table, moment in (
        (Message, "created_at"),
        (Course, "opened_at"),
        (Reminder, "created_at"),
        (Reminder, "updated_at"),
        (Question, "asked_at"),
        (RemediationPrompt, "created_at"),
        (AutonomousRun, "started_at"),
        (CompactionRun, "queued_at"),
        (MessageMark, "marked_at"),
        (ViewChange, "changed_at"),
        (ContextEvent, "happened_at"),
    ):
        table._default_manager.update(**{moment: AGO})
    return dialog
