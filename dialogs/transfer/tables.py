"""What every field of a dialog file must be: a table of readers for each kind of entry in `shape.py`, `shape_views.py`.

`formats.py` puts them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialogs.agents.writes.reminders import REMINDER_CHARS
from dialogs.models import (
    AutonomousRun,
    Course,
    Generation,
    MessageMark,
    Question,
    RemediationPrompt,
    ToolCall,
    ViewChange,
)
from dialogs.models.dialog import COUNTDOWN_TURNS
from dialogs.models.llm import WindowSource
from dialogs.models.message import MessageOrigin, Role
from dialogs.models.reminder import Author
from dialogs.transcript import quotes
from dialogs.transcript.model_view import HANDOVER
from dialogs.transcript.writes.marks import AREA_CHARS
from dialogs.transcript.writes.standing_rules import RULE_CHARS
from dialogs.transcript.writes.trash import SENT_KEYS
from dialogs.transfer.place import (
    MAX_COUNTED,
    Place,
    Reader,
    flag,
    json_object,
    list_of,
    maybe,
    moment,
    number,
    one_of,
    record,
    text,
    whole,
)
from dialogs.transfer.shape import (
    UNAVAILABLE,
    CallPlace,
    CarriedEntry,
    QuestionEntry,
    ReadingEntry,
    SentEntry,
    UsageEntry,
)
from dialogs.transfer.shape_views import (
    UNDER_WAY,
    LedgerEntry,
    LossEntry,
    ReceiptEntry,
    SeenEntry,
    Status,
    StepEntry,
    TermEntry,
)
from dialogs.turns.writes.autonomous import GOAL_CHARS, MAX_GENERATIONS
from health.compaction.config import RecoveryMode
from health.compaction.terms.outcome import Code, Extent
from health.compaction.terms.units import Kind
from health.models import CompactionRun, HealthReading
from health.monitor.levels import Level
from health.monitor.remediation import Due

MAX_ENTRIES = 50_000
Table = Mapping[str, Reader[Any]]
long_text = text(20_000_000)
short_text = text(300)
counted = whole(1, MAX_COUNTED)


def entry(kind: type, table: Table) -> Reader[Any]:
    return lambda place: kind(**record(place, table))


def entries(kind: type, table: Table) -> Reader[Any]:
    return list_of(entry(kind, table), most=MAX_ENTRIES)


seqs = list_of(counted, most=MAX_ENTRIES)
CALL_PLACE = {"message": counted, "position": whole()}
CARRIED = {
    "reminders": seqs,
    "taskdoc": flag,
    "request": maybe(counted),
    "questions": entries(CallPlace, CALL_PLACE),
}
COURSE: Table = {
    "number": counted,
    "opened_by": one_of(Course.OpenedBy.values),
    "opened_at": moment,
    "carried": maybe(entry(CarriedEntry, CARRIED)),
    # What was not measured leaves the level as it was: a course is never unknown.
    "level": one_of(level.value for level in Level if level is not Level.UNKNOWN),
    "caution_generations": whole(0, MAX_COUNTED),
    "countdown_turns": whole(0, COUNTDOWN_TURNS),
    "due": one_of(due.value for due in Due),
    "head": maybe(counted),
    "guard_held": flag,
}
MESSAGE = {
    "seq": counted,
    "parent": maybe(counted),
    "course": counted,
    "turn": whole(0, MAX_COUNTED),
    "role": one_of(Role.values),
    "origin": one_of(MessageOrigin.values),
    "content": long_text,
    "parts": json_object,
    "cut_short": flag,
    "created_at": moment,
}
USAGE = {
    "prompt_tokens": whole(),
    "completion_tokens": whole(),
    "total_tokens": whole(),
    "cached_tokens": maybe(whole()),
}
READING = {
    "level": one_of(HealthReading.Level.values),
    "reason": one_of(["", *HealthReading.Reason.values]),
    "context_window": maybe(whole(1)),
    "window_source": one_of(["", *WindowSource.values]),
    "optimal_max_tokens": maybe(whole(1)),
    "optimal_configured": flag,
    "critical_max_tokens": maybe(whole(1)),
    "critical_configured": flag,
    "read_at": moment,
}


def sent_texts(place: Place) -> dict[str, int]:
    """An object with some of the texts' names."""
    present = [key for key in SENT_KEYS if isinstance(place.value, dict) and key in place.value]
    return record(place, dict.fromkeys(present, whole()))


SENT: Table = {
    "messages": seqs,
    "texts": sent_texts,
    "options": json_object,
    "view": maybe(counted),
    "estimated": maybe(whole()),
}


def usage(place: Place) -> UsageEntry | str:
    return UNAVAILABLE if place.value == UNAVAILABLE else UsageEntry(**record(place, USAGE))


GENERATION: Table = {
    "course": counted,
    "number": counted,
    "turn": whole(0, MAX_COUNTED),
    "attempt": counted,
    "llm": short_text,
    "prompt_leaf": counted,
    "message": maybe(counted),
    "status": one_of(Generation.Status.values),
    "sent": entry(SentEntry, SENT),
    "partial_text": long_text,
    "partial_reasoning": long_text,
    "usage": usage,
    "usage_raw": maybe(json_object),
    "reading": maybe(entry(ReadingEntry, READING)),
    "finish_reason": text(60),
    "error_code": text(60),
    "error_message": long_text,
    "started_at": moment,
    "first_token_at": maybe(moment),
    "finished_at": maybe(moment),
}
QUEUED = {"content": long_text, "created_at": moment}
REMINDER = {
    "number": counted,
    "content": text(REMINDER_CHARS, least=1),
    "position": whole(0, MAX_COUNTED),
    "author": one_of(Author.values),
    "course": maybe(counted),
    "is_continuation": flag,
    "created_at": moment,
    "updated_at": moment,
    "removed_at": maybe(moment),
}
RULE = {"text": text(RULE_CHARS, least=1), "holds": flag, "at": moment}
QUESTION = {
    "text": long_text,
    "choices": list_of(long_text, most=100),
    "status": one_of(Question.Status.values),
    "answer": long_text,
    "asked_at": moment,
    "answered_at": maybe(moment),
}
CALL = {
    **CALL_PLACE,
    # Some clients name none: see `laws_of_calls.py`.
    "call_id": text(200),
    "name": text(200),
    "arguments": long_text,
    "status": one_of(ToolCall.Status.values),
    "idempotent": flag,
    "result": long_text,
    "result_message": maybe(counted),
    "started_at": maybe(moment),
    "finished_at": maybe(moment),
    "question": maybe(entry(QuestionEntry, QUESTION)),
}
PROMPT = {
    "message": counted,
    "level": one_of(RemediationPrompt.Level.values),
    "remaining": maybe(whole(0, COUNTDOWN_TURNS)),
    "notice": long_text,
    "curated": maybe(flag),
    "created_at": moment,
}
RUN = {
    "goal": text(GOAL_CHARS, least=1),
    "max_generations": whole(1, MAX_GENERATIONS),
    "generations": whole(0, MAX_COUNTED),
    "first_course": counted,
    "started_at": moment,
    "ended_at": maybe(moment),
    "ended_by": one_of(["", *AutonomousRun.EndedBy.values]),
    "summary": long_text,
}
CLIENT = {
    "model": short_text,
    "instructions": long_text,
    "tools": list_of(json_object, most=MAX_ENTRIES),
    "options": json_object,
    "max_output_tokens": maybe(whole(1)),
    "offers_recall": flag,
    "chat": text(200),
}


name = text(120)
priority = maybe(whole(min(MessageMark.Priority.values), max(MessageMark.Priority.values)))

MARK: Table = {
    "message": counted,
    "pinned": flag,
    "priority": priority,
    "area": text(AREA_CHARS),
    "marked_at": moment,
}
SEEN = {
    "message": maybe(counted),
    "content": maybe(long_text),
    "kind": one_of(["", HANDOVER, quotes.KIND, *Kind]),
    "covers": seqs,
}
STEP = {
    "phase": name,
    "estimated_before": whole(),
    "estimated_after": whole(),
    "changed": flag,
    "note": long_text,
    "ms": number,
}
TERM = {"what": long_text, "tokens": whole(), "source": long_text}
RECEIPT = {"message": maybe(counted), "extent": one_of(Extent), "read": whole(), "total": whole()}
LOSS = {"text": long_text, "kind": name, "message": maybe(counted), "kept": flag}
LEDGER = {"text": long_text, "kind": name}
COMPACTION: Table = {
    "number": counted,
    "course": counted,
    "parent": maybe(counted),
    "leaf": counted,
    "turn": whole(),
    "trigger": one_of(CompactionRun.Trigger.values),
    "status": one_of(status for status in Status.values if status not in UNDER_WAY),
    "focus": long_text,
    "up_to_seq": maybe(counted),
    "chain": list_of(name, most=100),
    "limit_tokens": whole(),
    "reserve_tokens": whole(),
    "limit_trace": entries(TermEntry, TERM),
    "steps": entries(StepEntry, STEP),
    "phase": text(40),
    "tokens_now": maybe(whole()),
    "priority": priority,
    "priority_area": text(AREA_CHARS),
    "estimated_before": maybe(whole()),
    "estimated_after": maybe(whole()),
    "messages_before": maybe(whole()),
    "messages_after": maybe(whole()),
    "counter": text(60),
    "grade": text(20),
    "embedder": name,
    "coherence": maybe(number),
    "reward": maybe(number),
    "recovered": one_of(["", *RecoveryMode]),
    "view": entries(SeenEntry, SEEN),
    "removed": seqs,
    "coverage": entries(ReceiptEntry, RECEIPT),
    "losses": entries(LossEntry, LOSS),
    "ledger": entries(LedgerEntry, LEDGER),
    "warnings": list_of(long_text, most=MAX_ENTRIES),
    "code": one_of(["", *Code]),
    "reason": long_text,
    "queued_at": moment,
    "started_at": maybe(moment),
    "finished_at": maybe(moment),
}
VIEW_CHANGE: Table = {
    "course": counted,
    "before": maybe(counted),
    "after": maybe(counted),
    "why": one_of(ViewChange.Why.values),
    "changed_at": moment,
}
