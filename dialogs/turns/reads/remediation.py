"""Where remediation stands, as a person sees it: what the agent is asked, when next, and whether it complies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Count, Q, QuerySet

from dialogs.llms.reads.providers import configured
from dialogs.models import Course, Dialog, RemediationPrompt
from dialogs.transcript.reads.courses import current_course
from dialogs.transcript.reads.tool_calls import offers_notes
from dialogs.turns.reads.remediation_state import spared
from dominds.prepared import prepared
from health.monitor.levels import Level, caution_cadence
from health.monitor.remediation import Due, Remediation, generations_to_next_prompt


@dataclass(frozen=True, kw_only=True)
class RemediationStatus:
    """All counts are of the current course."""

    course_number: int
    level: str
    # What the newest reading asks for and nobody has been given yet.
    due: str
    cadence: int
    # Generations until the next prompt, in caution; prompts left before a new course, in critical.
    next_prompt_in: int | None
    remaining: int | None
    prompts: int
    curated_yes: int
    curated_no: int
    paused_by: str
    # Why the agent is asked for nothing, where compaction makes room instead; empty where it is asked.
    spared: str
    # The agent is not offered the tools that write reminders, so nothing can be curated.
    no_tools: bool

    @property
    def asks(self) -> bool:
        return self.level in (Level.CAUTION, Level.CRITICAL)


def remediation_status(dialog: Dialog) -> RemediationStatus | None:
    """None where the dialog has no course, which no service leaves behind."""
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
        spared=spared(dialog),
        no_tools=not offers_notes(dialog),
        **_compliance(course),
    )


def _compliance(course: Course) -> dict[str, int]:
    (found,) = _counts(course.pk) or [(0, 0, 0)]
    return dict(zip(("prompts", "curated_yes", "curated_no"), found, strict=True))


@prepared(BigIntegerField())
def _counts(course_id: Any) -> QuerySet[RemediationPrompt, Any]:
    by_course = RemediationPrompt.objects.filter(course=course_id).order_by().values("course")
    yes, no = (Count("pk", filter=Q(curated=said)) for said in (True, False))
    return by_course.annotate(all=Count("pk"), yes=yes, no=no).values_list("all", "yes", "no")
