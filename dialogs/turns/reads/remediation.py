"""The state of remediation: what it requires of the driver now, and what a person sees (what the agent is asked, when
next, and whether it complies).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import BigIntegerField, Count, Q, QuerySet, UUIDField

from dialogs.llms.guard import may_be_guarded
from dialogs.llms.reads import configured
from dialogs.models import Course, Dialog, Generation, Message, RemediationPrompt, Reminder
from dialogs.models.agent import WhenFull
from dialogs.models.dialog import COUNTDOWN_TURNS, OwnTools
from dialogs.models.message import Role
from dialogs.models.reminder import Author
from dialogs.transcript.reads.courses import current_course
from dialogs.transcript.reads.tool_calls import CLEAR_MIND, offers_notes, offers_tools
from dominds.prepared import Many, prepared
from health.monitor.levels import Level, caution_cadence
from health.monitor.remediation import Due, Remediation, generations_to_next_prompt

# After this many courses in a row that were full from the start, opening another one does not help.
FUTILE_COURSES = 3
# After this many prompts in caution without a new reminder the agent gets no more of them.
CAUTION_PROMPTS = 3
UNASKED = (Course.OpenedBy.AUTO, Course.OpenedBy.RECOVERY)


@dataclass(frozen=True, kw_only=True)
class RemediationStatus:
    """All counts are of the current course."""

    course_number: int
    level: str
    # The prompt that the newest reading makes due and that is not inserted yet.
    due: str
    cadence: int
    # Generations until the next prompt, in caution; prompts left before a new course, in critical.
    next_prompt_in: int | None
    remaining: int | None
    prompts: int
    curated_yes: int
    curated_no: int
    paused_by: str
    # Why the agent gets no prompts, as compaction makes room instead; empty if it gets them.
    spared: str
    # The agent is not offered the tools that write reminders, so nothing can be curated.
    no_tools: bool

    @property
    def asks(self) -> bool:
        return self.level in (Level.CAUTION, Level.CRITICAL)


def remediation_status(dialog: Dialog, *, takes_notes: bool, was_asked: bool = True) -> RemediationStatus | None:
    """None if the dialog has no course, which does not happen normally. `takes_notes`: `offers_notes` of the dialog."""
    course = current_course(dialog)
    if course is None:
        return None
    state = Remediation(level=Level(course.level), caution_generations=course.caution_generations)
    cadence = caution_cadence(configured(dialog.llm))
    return RemediationStatus(
        course_number=course.number,
        level=course.level,
        due=Due(course.due),
        cadence=cadence,
        next_prompt_in=generations_to_next_prompt(state, cadence=cadence),
        remaining=course.countdown_turns if state.level is Level.CRITICAL else None,
        paused_by=dialog.paused_by,
        spared=why_no_prompt(dialog, takes_notes=takes_notes, was_asked=was_asked),
        no_tools=not takes_notes,
        **_compliance(course, was_asked),
    )


def _compliance(course: Course, was_asked: bool) -> dict[str, int]:
    (found,) = (was_asked and _counts(course.pk)) or [(0, 0, 0)]
    return dict(zip(("prompts", "curated_yes", "curated_no"), found, strict=True))


@prepared(BigIntegerField())
def _counts(course_id: Any) -> QuerySet[RemediationPrompt, Any]:
    by_course = RemediationPrompt.objects.filter(course=course_id).order_by().values("course")
    yes, no = (Count("pk", filter=Q(curated=said)) for said in (True, False))
    return by_course.annotate(all=Count("pk"), yes=yes, no=no).values_list("all", "yes", "no")


def clearing_is_futile(dialog: Dialog) -> bool:
    """True if the newest courses were all opened automatically, and all full from the start."""
    newest = _newest(dialog)
    return len(newest) == FUTILE_COURSES and all(_was_full_at_once(course) for course in newest)


def only_clears(dialog: Dialog) -> bool:
    """True if every answer of the newest courses called `clear_mind`."""
    newest = _newest(dialog)
    answers = Message.objects.filter(course__in=newest, role=Role.ASSISTANT)
    return len(newest) == FUTILE_COURSES and not answers.exclude(calls__name=CLEAR_MIND).exists()


def has_curated(course_id: int) -> bool:
    """Whether the agent wrote a reminder in this course that was not removed."""
    return Reminder.objects.filter(course_id=course_id, author=Author.AGENT, removed_at=None).exists()


class NoPrompt(StrEnum):
    """Why an agent gets no prompts to write reminders: compaction makes room instead."""

    NOT = ""
    NO_TOOLS = "no_tools"
    SWITCHED_OFF = "switched_off"
    SMALL_ROOM = "small_room"
    IN_VAIN = "in_vain"
    CHOSEN = "chosen"


def why_no_prompt(dialog: Dialog, *, takes_notes: bool | None = None, was_asked: bool = True) -> NoPrompt:
    """Without automatic compaction only reminders help, so every agent is prompted unless its settings say otherwise.
    An agent whose setting is REMIND is prompted, and its countdown runs, even if its model cannot call tools."""
    if dialog.agent.when_full == WhenFull.NO_PROMPTS:
        return NoPrompt.CHOSEN
    if not may_be_guarded(dialog):
        return NoPrompt.NOT
    if dialog.own_tools == OwnTools.OFF and offers_tools(dialog.llm):
        return NoPrompt.SWITCHED_OFF
    if dialog.agent.when_full == WhenFull.REMIND:
        return NoPrompt.NOT
    if not offers_tools(dialog.llm):
        return NoPrompt.NO_TOOLS
    if not (offers_notes(dialog) if takes_notes is None else takes_notes):
        return NoPrompt.SMALL_ROOM
    goes_on = _is_counting_down(dialog) or not (was_asked and is_asked_in_vain(dialog.pk))
    return NoPrompt.NOT if goes_on else NoPrompt.IN_VAIN


def is_reminded_first(dialog: Dialog) -> bool:
    """Is the agent prompted to write down what matters before its history is compacted?"""
    return dialog.agent.when_full == WhenFull.REMIND and not why_no_prompt(dialog)


def _is_counting_down(dialog: Dialog) -> bool:
    """Has a countdown begun? It runs on to the new course at its end."""
    course = dialog.current_leaf.course if dialog.current_leaf else None
    return course is not None and course.level == Level.CRITICAL and course.countdown_turns < COUNTDOWN_TURNS


def may_be_asked(dialog: Dialog) -> bool:
    return not why_no_prompt(dialog)


def is_asked_in_vain(dialog_id: UUID) -> bool:
    """Did the last complete countdown bring no reminder; or, after a prompt in caution, the last three of these?"""
    newest = _closed.first(dialog_id)
    if newest is None:
        return False
    closed = RemediationPrompt.objects.filter(dialog=dialog_id).exclude(curated=None).order_by("-id")
    if newest.level == RemediationPrompt.Level.CAUTION:
        asked, whole = closed.filter(level=newest.level), CAUTION_PROMPTS
    else:
        last = closed.filter(level=newest.level, remaining=0).first()
        asked, whole = closed.filter(level=newest.level, course=last.course_id if last else None), COUNTDOWN_TURNS
    curated = list(asked.values_list("curated", flat=True)[:whole])
    return len(curated) == whole and not any(curated)


@prepared(UUIDField())
def _closed(dialog_id: Any) -> QuerySet[RemediationPrompt]:
    return RemediationPrompt.objects.filter(dialog=dialog_id).exclude(curated=None).order_by("-id")[:1]


def _newest(dialog: Dialog) -> list[Course]:
    return list(dialog.courses.order_by("-number")[:FUTILE_COURSES])


def _was_full_at_once(course: Course) -> bool:
    """Was it critical at its first reading, or did the provider refuse all its requests as too long?"""
    if course.opened_by not in UNASKED:
        return False
    first = Generation.objects.filter(course=course, reading__isnull=False).order_by("number").first()
    if first is not None:
        return bool(first.reading.level == "critical")
    codes = Generation.objects.filter(course=course).values_list("error_code", flat=True)
    return bool(codes) and set(codes) == {"context_overflow"}


@prepared(Many(BigIntegerField()))
def newest_prompt_on(ids: Any) -> QuerySet[RemediationPrompt]:
    """The newest prompt that came with one of these messages, if any."""
    return _newest_first().filter(message_id__in=ids)[:1]


@prepared(BigIntegerField())
def newest_prompt_in(course_id: Any) -> QuerySet[RemediationPrompt]:
    """The newest prompt of a course, if any."""
    return _newest_first().filter(course_id=course_id)[:1]


def _newest_first() -> QuerySet[RemediationPrompt]:
    return RemediationPrompt.objects.order_by("-message__seq")
