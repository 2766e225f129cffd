"""Adapts a checked dialog file before its rows are inserted. Pure.

Generations, calls, questions and runs that were under way at the export end at its time (`at_rest`).

A dialog that a client drove becomes an ordinary one (`as_ordinary`), since no client knows the copy. The client's
instructions become its Taskdoc; its tools and options, which work only in the client, are left out. Providers demand
that results follow their calls; where a round of calls is not whole, calls and results become text.

Views that no provider would accept are dropped (`with_sound_views`). A view is sound when its messages are on the
branch it was made from, in order, each once, and each call with its results. In place of a dropped view its parent's is
in force, and the run gets the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from dialogs.agents.writes import TASKDOC_CHARS
from dialogs.models import AutonomousRun, Generation, Question, ToolCall, ViewChange
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.reads.path import upward
from dialogs.transfer.laws import Children, children_of, is_whole, rounds
from dialogs.transfer.shape import CallEntry, DialogFile, GenerationEntry, MessageEntry, QuestionEntry, RunEntry
from dialogs.transfer.shape_views import HOLDS, CompactionEntry, Status, ViewChangeEntry
from health.compaction.terms.reasons import Reason, Why

UNANSWERED = "Not answered: the client had not sent the result when the dialog was exported."
INTERRUPTED = "Interrupted: the dialog was exported in the middle of this call. Its result is not known."
Rounds = Mapping[int, list[CallEntry]]
CUT_OFF = "\n[cut off: {count:,} characters in all]"
# The results of each closed round, by the message that called.
Closed = dict[int, tuple[int, ...]]


def at_rest(file: DialogFile) -> DialogFile:
    """The file with everything ended that was under way, and with a result for every call."""
    return _with_results(
        replace(
            file,
            generations=tuple(_ended_generation(entry) for entry in file.generations),
            calls=tuple(_ended_call(entry, file.exported_at) for entry in file.calls),
            runs=tuple(_ended_run(entry, file.exported_at) for entry in file.runs),
        )
    )


def _ended_generation(entry: GenerationEntry) -> GenerationEntry:
    running = entry.status == Generation.Status.RUNNING
    return replace(entry, status=Generation.Status.INTERRUPTED.value) if running else entry


def _ended_call(entry: CallEntry, now: datetime) -> CallEntry:
    question = _ended_question(entry.question, now) if entry.question else None
    if entry.status == ToolCall.Status.CLIENT and entry.result_message is None:
        return replace(entry, status=ToolCall.Status.WITHDRAWN.value, result=UNANSWERED, finished_at=now)
    if entry.status not in ToolCall.OPEN:
        return replace(entry, question=question)
    interrupted = ToolCall.Status.INTERRUPTED.value
    result = "" if entry.result_message else INTERRUPTED
    return replace(entry, question=question, status=interrupted, result=result, finished_at=now)


def _ended_question(entry: QuestionEntry, now: datetime) -> QuestionEntry:
    if entry.status != Question.Status.PENDING:
        return entry
    return replace(entry, status=Question.Status.WITHDRAWN.value, answered_at=now)


def _ended_run(entry: RunEntry, now: datetime) -> RunEntry:
    if entry.ended_at is not None:
        return entry
    return replace(entry, ended_at=now, ended_by=AutonomousRun.EndedBy.PERSON.value)


def _with_results(file: DialogFile) -> DialogFile:
    """Close open rounds as `turns.writes.tool_calls.add_results` does: add results as messages below their caller."""
    messages = {message.seq: message for message in file.messages}
    results: dict[tuple[int, int], int] = {}
    seq, leaf = max(messages, default=0), file.current_leaf
    for caller, calls in rounds(file).items():
        above = messages[caller]
        for call in calls:
            if call.result_message is None:
                seq += 1
                above = messages[seq] = _result(call, seq=seq, above=above, now=file.exported_at)
                results[call.message, call.position] = seq
        leaf = above.seq if leaf == caller else leaf
    calls_now = tuple(_answered(call, results.get((call.message, call.position))) for call in file.calls)
    return replace(file, messages=tuple(messages.values()), calls=calls_now, current_leaf=leaf)


def _answered(call: CallEntry, result: int | None) -> CallEntry:
    # The message holds the text now.
    return call if result is None else replace(call, result="", result_message=result)


def _result(call: CallEntry, *, seq: int, above: MessageEntry, now: datetime) -> MessageEntry:
    return MessageEntry(
        seq=seq,
        parent=above.seq,
        course=above.course,
        turn=above.turn,
        role=Role.TOOL.value,
        origin=MessageOrigin.TOOL.value,
        content=call.result,
        parts={"tool_call_id": call.call_id},
        cut_short=False,
        created_at=now,
    )


def as_ordinary(file: DialogFile) -> DialogFile:
    """The file as an ordinary dialog's. It has not been checked by `laws.py` yet."""
    if file.client is None:
        return file
    children = children_of(file)
    made = rounds(file)
    whole = {caller: calls for caller, calls in made.items() if _can_stay(caller, calls, children, file.current_leaf)}
    told = {caller: calls for caller, calls in made.items() if caller not in whole}
    return replace(
        file,
        client=None,
        taskdoc=_taskdoc(file.client.instructions),
        messages=_in_words(file, whole, told),
        calls=tuple(call for call in file.calls if call.message in whole),
    )


def _taskdoc(instructions: str) -> str:
    text = instructions.strip()
    if len(text) <= TASKDOC_CHARS:
        return text
    mark = CUT_OFF.format(count=len(text))
    return text[: TASKDOC_CHARS - len(mark)] + mark


def _can_stay(caller: int, calls: list[CallEntry], children: Children, leaf: int | None) -> bool:
    ids = [call.call_id for call in calls]
    return all(ids) and len(set(ids)) == len(ids) and is_whole(caller, calls, children, leaf)


def _in_words(file: DialogFile, whole: Rounds, told: Rounds) -> tuple[MessageEntry, ...]:
    """The messages with rounds that are not whole as text: calls in their answer's content, results as user
    messages."""
    results = {call.result_message for calls in whole.values() for call in calls}
    names = {call.result_message: call.name for calls in told.values() for call in calls}
    return tuple(
        _as_said(entry, names.get(entry.seq, ""))
        if entry.role == Role.TOOL and entry.seq not in results
        else _caller(entry, told.get(entry.seq, ()))
        for entry in file.messages
    )


def _caller(entry: MessageEntry, calls: list[CallEntry] | tuple[()]) -> MessageEntry:
    if not calls:
        return entry
    words = [f"[called {call.name} with {call.arguments or '{}'}]" for call in calls]
    return replace(entry, content="\n".join(filter(None, [entry.content, *words])))


def _as_said(entry: MessageEntry, name: str) -> MessageEntry:
    words = f"[result of {name or entry.parts.get('tool_call_id', '')}]\n{entry.content}"
    parts = {key: value for key, value in entry.parts.items() if key != "tool_call_id"}
    return replace(entry, role=Role.USER.value, origin=MessageOrigin.CLIENT.value, content=words, parts=parts)


def with_sound_views(file: DialogFile) -> DialogFile:
    """The file (all of its calls have results) with unsound views dropped."""
    unsound = _unsound(file)
    if not unsound:
        return file
    fallback = _ViewFallback(file.compactions, unsound)
    return replace(
        file,
        compactions=tuple(fallback.run(entry) for entry in file.compactions),
        courses=tuple(replace(entry, head=fallback.at(entry.head)) for entry in file.courses),
        view_changes=(*file.view_changes, *_changes_to_fallback(file, fallback)),
        generations=tuple(_without_view(entry, unsound) for entry in file.generations),
    )


class _ViewFallback:
    """Replaces dropped views by the nearest sound ancestor's."""

    def __init__(self, entries: Collection[CompactionEntry], unsound: Collection[int]) -> None:
        self.parents = {entry.number: entry.parent for entry in entries}
        self.unsound = unsound

    def at(self, number: int | None) -> int | None:
        while number is not None and number in self.unsound:
            number = self.parents[number]
        return number

    def run(self, entry: CompactionEntry) -> CompactionEntry:
        entry = replace(entry, parent=self.at(entry.parent))
        if entry.number not in self.unsound:
            return entry
        cancelled = Status.CANCELLED.value
        why = str(Reason(Why.UNSOUND_VIEW))
        return replace(entry, view=(), removed=(), status=cancelled, phase=cancelled, reason=why)


def _changes_to_fallback(file: DialogFile, fallback: _ViewFallback) -> Iterator[ViewChangeEntry]:
    for entry in file.courses:
        after = fallback.at(entry.head)
        if after != entry.head:
            undone = ViewChange.Why.UNDONE.value
            yield ViewChangeEntry(
                course=entry.number, before=entry.head, after=after, why=undone, changed_at=file.exported_at
            )


def _without_view(entry: GenerationEntry, unsound: Collection[int]) -> GenerationEntry:
    """The generation without its view, if that was dropped: its messages still say what was sent."""
    return replace(entry, sent=replace(entry.sent, view=None)) if entry.sent.view in unsound else entry


def _unsound(file: DialogFile) -> set[int]:
    """The numbers of the runs whose views cannot be sent."""
    parents = _parents(file)
    closed = {
        caller: (caller, *(call.result_message for call in calls if call.result_message is not None))
        for caller, calls in rounds(file).items()
    }
    views = [entry for entry in file.compactions if entry.status in HOLDS]
    return {entry.number for entry in views if not _is_sound(entry, parents, closed)}


def _parents(file: DialogFile) -> dict[int, int | None]:
    """The message before each one in its course."""
    courses: dict[int | None, int] = {entry.seq: entry.course for entry in file.messages}
    return {entry.seq: entry.parent if courses.get(entry.parent) == entry.course else None for entry in file.messages}


def _is_sound(entry: CompactionEntry, parents: dict[int, int | None], closed: Closed) -> bool:
    branch = set(upward(entry.leaf, parents))
    shown = [seen.message for seen in entry.view]
    said = [seq for seq in shown if seq is not None]
    if not shown or not branch.issuperset(said) or said != sorted(set(said)):
        return False
    here = [members for caller, members in closed.items() if caller in branch]
    # A round that was open when the run began: its results follow the view.
    later = [seq for members in here for seq in members if seq not in branch]
    place = {seq: at for at, seq in enumerate([*shown, *later]) if seq is not None}
    return all(_is_together([place.get(seq) for seq in members]) for members in here)


def _is_together(places: list[int | None]) -> bool:
    """Are these places consecutive, or all None (not in the view)?"""
    first = places[0]
    return not any(at is not None for at in places) if first is None else places == [*range(first, first + len(places))]
