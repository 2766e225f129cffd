"""The dialog file as a whole, in the present format and in the older ones: each is what it lacks of the next."""

from __future__ import annotations

from typing import Any

from dialogs.agents.writes.reminders import TASKDOC_CHARS
from dialogs.models.dialog import OwnTools, WorkLanguage
from dialogs.models.llm import Compaction
from dialogs.transcript.writes.standing_rules import MOST_RULES
from dialogs.transfer.place import Place, Reader, flag, json_object, list_of, maybe, moment, one_of, record, text, whole
from dialogs.transfer.shape import (
    FIFTH_FORMAT,
    FIRST_FORMAT,
    FORMAT,
    FOURTH_FORMAT,
    SECOND_FORMAT,
    SEVENTH_FORMAT,
    SIXTH_FORMAT,
    THIRD_FORMAT,
    CallEntry,
    ClientEntry,
    CourseEntry,
    DialogFile,
    GenerationEntry,
    MessageEntry,
    PromptEntry,
    QueuedEntry,
    ReminderEntry,
    RuleEntry,
    RunEntry,
    SentEntry,
)
from dialogs.transfer.shape_events import FACT_CHARS, TRAVELS, EventEntry, TaskEntry
from dialogs.transfer.shape_views import CompactionEntry, MarkEntry, ViewChangeEntry
from dialogs.transfer.tables import (
    CALL,
    CLIENT,
    COMPACTION,
    COURSE,
    GENERATION,
    MARK,
    MAX_ENTRIES,
    MESSAGE,
    PROMPT,
    QUEUED,
    REMINDER,
    RULE,
    RUN,
    SENT,
    VIEW_CHANGE,
    Table,
    counted,
    entries,
    entry,
    long_text,
    seqs,
    short_text,
)
from health.compaction.snapshot import GOAL_CHARS, MOST_ACTIONS, MOST_OBSERVATIONS, OBSERVATION_CHARS, PHASES
from health.models import CompactionRun

TASK: Table = {
    "goal": text(GOAL_CHARS),
    "current_phase": one_of(PHASES),
    "completed_actions": list_of(text(200), most=MOST_ACTIONS),
    "key_observations": list_of(text(OBSERVATION_CHARS), most=MOST_OBSERVATIONS),
    "earlier_actions": whole(),
}
EVENT: Table = {
    "code": one_of(TRAVELS),
    "run": maybe(counted),
    "llm": short_text,
    "estimated": maybe(whole()),
    "limit": maybe(whole()),
    "course": maybe(counted),
    "message": maybe(counted),
    "turn": maybe(whole()),
    "trigger": one_of(["", *CompactionRun.Trigger.values]),
    "cause": text(FACT_CHARS),
    "reason": text(FACT_CHARS),
    "compactions": maybe(whole()),
    "happened_at": moment,
}


DIALOG: Table = {
    "format": one_of([FORMAT]),
    "exported_at": moment,
    "title": text(200),
    "titled_by_person": flag,
    "agent": short_text,
    "llm": short_text,
    "work_language": one_of(WorkLanguage.values),
    "compaction": one_of(Compaction.values),
    "own_tools": one_of(OwnTools.values),
    "taskdoc": text(TASKDOC_CHARS),
    "created_at": moment,
    "active_at": moment,
    "current_leaf": maybe(counted),
    "courses": entries(CourseEntry, COURSE),
    "messages": entries(MessageEntry, MESSAGE),
    "generations": entries(GenerationEntry, GENERATION),
    "queued": entries(QueuedEntry, QUEUED),
    "reminders": entries(ReminderEntry, REMINDER),
    "standing_rules": list_of(entry(RuleEntry, RULE), most=MOST_RULES),
    "calls": entries(CallEntry, CALL),
    "prompts": entries(PromptEntry, PROMPT),
    "runs": entries(RunEntry, RUN),
    "marks": entries(MarkEntry, MARK),
    "compactions": entries(CompactionEntry, COMPACTION),
    "view_changes": entries(ViewChangeEntry, VIEW_CHANGE),
    "texts": list_of(long_text, most=5 * MAX_ENTRIES),
    "client": maybe(entry(ClientEntry, CLIENT)),
    "task": maybe(entry(TaskEntry, TASK)),
    "events": entries(EventEntry, EVENT),
}


def without(table: Table, *names: str) -> dict[str, Reader[Any]]:
    return {name: read for name, read in table.items() if name not in names}


SEVENTH_DIALOG: Table = {**without(DIALOG, "own_tools"), "format": one_of([SEVENTH_FORMAT])}
SIXTH_DIALOG: Table = {**without(SEVENTH_DIALOG, "standing_rules"), "format": one_of([SIXTH_FORMAT])}
FIFTH_DIALOG: Table = {**without(SIXTH_DIALOG, "compaction"), "format": one_of([FIFTH_FORMAT])}
FOURTH_DIALOG: Table = {**without(FIFTH_DIALOG, "task", "events"), "format": one_of([FOURTH_FORMAT])}
THIRD_DIALOG: Table = {**without(FOURTH_DIALOG, "client"), "format": one_of([THIRD_FORMAT])}
SECOND_COURSE = without(COURSE, "head", "guard_held")
SECOND_SENT = without(SENT, "view", "estimated")
SECOND_DIALOG: Table = {
    **without(THIRD_DIALOG, "marks", "compactions", "view_changes"),
    "format": one_of([SECOND_FORMAT]),
    "courses": entries(CourseEntry, SECOND_COURSE),
    "generations": entries(GenerationEntry, {**GENERATION, "sent": entry(SentEntry, SECOND_SENT)}),
}
FIRST_COURSE = without(SECOND_COURSE, "carried", "level", "caution_generations", "countdown_turns", "due")
FIRST_DIALOG: Table = {
    **without(SECOND_DIALOG, "work_language", "taskdoc", "reminders", "calls", "prompts", "runs", "texts"),
    "format": one_of([FIRST_FORMAT]),
    "courses": entries(CourseEntry, FIRST_COURSE),
}


def present(place: Place) -> DialogFile:
    return DialogFile(**record(place, DIALOG))


def seventh(place: Place) -> DialogFile:
    return DialogFile(**record(place, SEVENTH_DIALOG))


def sixth(place: Place) -> DialogFile:
    return DialogFile(**record(place, SIXTH_DIALOG))


def fifth(place: Place) -> DialogFile:
    return DialogFile(**record(place, FIFTH_DIALOG))


def fourth(place: Place) -> DialogFile:
    return DialogFile(**record(place, FOURTH_DIALOG))


def third(place: Place) -> DialogFile:
    return DialogFile(**record(place, THIRD_DIALOG))


def second(place: Place) -> DialogFile:
    return DialogFile(**record(place, SECOND_DIALOG))


def first(place: Place) -> DialogFile:
    """Its instructions stand in every generation anew; here each stands once."""
    texts: dict[str, int] = {}
    generation = {**GENERATION, "sent": _first_sent(texts)}
    fields = record(place, {**FIRST_DIALOG, "generations": entries(GenerationEntry, generation)})
    return DialogFile(**fields, texts=tuple(texts))


def _first_sent(texts: dict[str, int]) -> Reader[SentEntry]:
    """Reads what was sent and adds its instructions, if they are new, to `texts`, by index."""

    def read(place: Place) -> SentEntry:
        fields: dict[str, Any] = record(
            place, {"messages": seqs, "instructions": maybe(long_text), "options": json_object}
        )
        instructions = fields.pop("instructions")
        used = {} if instructions is None else {"instructions": texts.setdefault(instructions, len(texts))}
        return SentEntry(**fields, texts=used)

    return read


READERS: dict[object, Reader[DialogFile]] = {
    SEVENTH_FORMAT: seventh,
    SIXTH_FORMAT: sixth,
    FIFTH_FORMAT: fifth,
    FOURTH_FORMAT: fourth,
    THIRD_FORMAT: third,
    SECOND_FORMAT: second,
    FIRST_FORMAT: first,
}
