"""Laws of a dialog file as a whole: what refers to something finds it, every level follows from its numbers, and
whatever branch is shown, each result follows its call and no call lacks one.

A round is the calls of one message. Its results follow that message as a chain, in the calls' order; while a round is
open there are none, and nothing else may follow. Whether a view can be sent is another question, answered in
`adapting.py`: one that cannot is no reason to refuse.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from django.utils.translation import gettext as _
from pydantic import ValidationError

from dialogs.agents.writes import MOST_REMINDERS
from dialogs.api.schemas import ChatMessage
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.attachments import hashes_in
from dialogs.transfer.place import Place, find, once
from dialogs.transfer.shape import CallEntry, DialogFile, GenerationEntry, MessageEntry, ReadingEntry, UsageEntry
from dialogs.transfer.shape_views import HOLDS, CompactionEntry, Status
from health.monitor.levels import Configured, read
from health.monitor.usage import Usage, UsageUnavailable

# Whatever else makes messages speaks as the user.
ROLES = {
    MessageOrigin.AGENT: {Role.ASSISTANT},
    MessageOrigin.TOOL: {Role.TOOL},
    MessageOrigin.CLIENT: {Role.USER, Role.ASSISTANT, Role.SYSTEM},
}
Messages = dict[int, MessageEntry]
# The messages that follow each one.
Children = defaultdict[int, list[int]]


def check_whole(file: DialogFile) -> None:
    courses = once((entry.number for entry in file.courses), "courses", "number")
    seqs = once((entry.seq for entry in file.messages), "messages", "seq")
    if not courses:
        Place(None, "courses").refuse(_("must name at least one course."))
    if file.current_leaf is not None:
        find(file.current_leaf, seqs, "current_leaf")
    for index, entry in enumerate(file.messages):
        _check_message(entry, courses, seqs, f"messages[{index}]")
    once(((entry.course, entry.number) for entry in file.generations), "generations", "number")
    once((entry.message for entry in file.generations if entry.message is not None), "generations", "message")
    for index, generation in enumerate(file.generations):
        _check_generation(generation, courses, seqs, f"generations[{index}]")
        _check_texts(generation, len(file.texts), f"generations[{index}].sent.texts")
    check_calls(file)
    _check_reminders(file, courses)
    _check_carried(file, seqs)
    _check_prompts(file)
    _check_runs(file, courses)
    check_views(file)
    check_events(file)


def _check_message(entry: MessageEntry, courses: set[object], seqs: set[object], path: str) -> None:
    find(entry.course, courses, f"{path}.course")
    if entry.role not in ROLES.get(MessageOrigin(entry.origin), {Role.USER}):
        Place(None, f"{path}.role").refuse(_("does not fit the origin."))
    check_parts(entry, path)
    if entry.parent is None:
        return
    find(entry.parent, seqs, f"{path}.parent")
    if entry.parent >= entry.seq:
        Place(None, f"{path}.parent").refuse(_("must come before its child."))


def _check_generation(entry: GenerationEntry, courses: set[object], seqs: set[object], path: str) -> None:
    find(entry.course, courses, f"{path}.course")
    find(entry.prompt_leaf, seqs, f"{path}.prompt_leaf")
    if entry.message is not None:
        find(entry.message, seqs, f"{path}.message")
    for seq in entry.sent.messages:
        find(seq, seqs, f"{path}.sent.messages")
    if entry.reading is not None and not _follows(entry.reading, usage_of(entry)):
        Place(None, f"{path}.reading").refuse(_("does not follow from the usage and the ceilings beside it."))


def _check_texts(entry: GenerationEntry, count: int, path: str) -> None:
    for key, index in entry.sent.texts.items():
        find(index, range(count), f"{path}.{key}")


def _check_reminders(file: DialogFile, courses: set[object]) -> None:
    once((entry.number for entry in file.reminders), "reminders", "number")
    if sum(entry.removed_at is None for entry in file.reminders) > MOST_REMINDERS:
        Place(None, "reminders").refuse(_("may have at most %(most)s that stand.") % {"most": MOST_REMINDERS})
    for index, entry in enumerate(file.reminders):
        if entry.course is not None:
            find(entry.course, courses, f"reminders[{index}].course")


def _check_carried(file: DialogFile, seqs: set[object]) -> None:
    reminders = {entry.number for entry in file.reminders}
    asked = {(entry.message, entry.position) for entry in file.calls if entry.question is not None}
    for index, entry in enumerate(file.courses):
        if entry.carried is None:
            continue
        path = f"courses[{index}].carried"
        for number in entry.carried.reminders:
            find(number, reminders, f"{path}.reminders")
        if entry.carried.request is not None:
            find(entry.carried.request, seqs, f"{path}.request")
        for place in entry.carried.questions:
            find((place.message, place.position), asked, f"{path}.questions")


def _check_prompts(file: DialogFile) -> None:
    once((entry.message for entry in file.prompts), "prompts", "message")
    said = {entry.seq for entry in file.messages if entry.role == Role.USER}
    for index, entry in enumerate(file.prompts):
        find(entry.message, said, f"prompts[{index}].message")


def _check_runs(file: DialogFile, courses: set[object]) -> None:
    for index, entry in enumerate(file.runs):
        find(entry.first_course, courses, f"runs[{index}].first_course")
        if (entry.ended_at is None) != (not entry.ended_by):
            Place(None, f"runs[{index}].ended_by").refuse(_("must be given with the end, and only then."))


def usage_of(entry: GenerationEntry) -> Usage | UsageUnavailable:
    if not isinstance(entry.usage, UsageEntry):
        return UsageUnavailable()
    return Usage(
        prompt_tokens=entry.usage.prompt_tokens,
        completion_tokens=entry.usage.completion_tokens,
        total_tokens=entry.usage.total_tokens,
        cached_tokens=entry.usage.cached_tokens,
    )


def judged_by(entry: ReadingEntry) -> Configured:
    """The limits in force when the reading was made."""
    return Configured(
        context_length=entry.context_window,
        optimal_max_tokens=entry.optimal_max_tokens,
        critical_max_tokens=entry.critical_max_tokens,
    )


def _follows(entry: ReadingEntry, usage: Usage | UsageUnavailable) -> bool:
    verdict = read(usage, judged_by(entry))
    return (verdict.level, verdict.reason) == (entry.level, entry.reason)


# --- Laws of events in a dialog file: the compaction, course and message that they name are there ---
def check_events(file: DialogFile) -> None:
    known = {
        "run": {entry.number for entry in file.compactions},
        "course": {entry.number for entry in file.courses},
        "message": {entry.seq for entry in file.messages},
    }
    for index, event in enumerate(file.events):
        for name, there in known.items():
            if getattr(event, name) is not None:
                find(getattr(event, name), there, f"events[{index}].{name}")


# --- Laws of what stands beside the text of messages in a dialog file ---
FIELDS = frozenset({"content", "name"})
HANDOVER_FIELDS = {"text": str, "tokens": int, "away": bool}
# Missing in older files.
MORE_OF_HANDOVER = {"laid_down": str}


def check_parts(entry: MessageEntry, path: str) -> None:
    """A reference to a text that is stored here already would show what may be another person's."""
    handover = entry.parts.get("handover")
    if handover is not None and (entry.origin != MessageOrigin.HANDOVER or not _is_handover(handover)):
        Place(None, f"{path}.parts.handover").refuse(_("must be a text with its size in tokens."))
    if "wire" not in entry.parts:
        return
    if not _is_sound(entry.parts["wire"]) or next(hashes_in([entry.parts]), None):
        Place(None, f"{path}.parts.wire").refuse(_("must be content parts as the API takes them."))


def _is_handover(value: Any) -> bool:
    if not isinstance(value, dict) or not HANDOVER_FIELDS.keys() <= value.keys():
        return False
    known = HANDOVER_FIELDS | MORE_OF_HANDOVER
    return all(type(one) is known.get(name) for name, one in value.items())


def _is_sound(wire: Any) -> bool:
    if not isinstance(wire, dict) or not wire.keys() <= FIELDS or not isinstance(wire.get("content", []), list):
        return False
    try:
        ChatMessage.model_validate({**wire, "role": "user"})
    except ValidationError:
        return False
    return wire.get("name", "") is not None


def check_views(file: DialogFile) -> None:
    courses = {entry.seq: entry.course for entry in file.messages}
    once((entry.message for entry in file.marks), "marks", "message")
    for index, mark in enumerate(file.marks):
        find(mark.message, courses, f"marks[{index}].message")
    once((entry.number for entry in file.compactions), "compactions", "number")
    runs: dict[int, CompactionEntry] = {}
    for index, entry in enumerate(file.compactions):
        _check_compaction(entry, courses, runs, f"compactions[{index}]")
        runs[entry.number] = entry
    _check_heads(file, runs)
    _check_changes(file, runs)


def _check_compaction(
    entry: CompactionEntry, courses: dict[int, int], earlier: dict[int, CompactionEntry], path: str
) -> None:
    for field, seq in _messages(entry):
        find(seq, courses, f"{path}.{field}")
    if courses[entry.leaf] != entry.course:
        Place(None, f"{path}.leaf").refuse(_("must be a message of the run's course."))
    if any(seen.message is None and seen.content is None for seen in entry.view):
        Place(None, f"{path}.view").refuse(_("must have a text where there is no message."))
    if entry.parent is not None:
        find(entry.parent, earlier, f"{path}.parent")
        _check_holds(earlier[entry.parent], entry.course, HOLDS, f"{path}.parent")


def _messages(entry: CompactionEntry) -> Iterator[tuple[str, int]]:
    """The messages that it names, each with the field where."""
    yield "leaf", entry.leaf
    yield from (("removed", seq) for seq in entry.removed)
    for seen in entry.view:
        yield from (("view", seq) for seq in (seen.message, *seen.covers) if seq is not None)
    yield from (("coverage", receipt.message) for receipt in entry.coverage if receipt.message is not None)
    yield from (("losses", loss.message) for loss in entry.losses if loss.message is not None)


def _check_holds(run: CompactionEntry, course: int, states: tuple[str, ...], path: str) -> None:
    if run.course != course or run.status not in states:
        Place(None, path).refuse(_("must be a compaction of the same course whose view holds."))


def _check_heads(file: DialogFile, runs: dict[int, CompactionEntry]) -> None:
    for index, entry in enumerate(file.courses):
        if entry.head is not None:
            find(entry.head, runs, f"courses[{index}].head")
            _check_holds(runs[entry.head], entry.number, (Status.APPLIED,), f"courses[{index}].head")


def _check_changes(file: DialogFile, runs: dict[int, CompactionEntry]) -> None:
    courses = {entry.number for entry in file.courses}
    for index, entry in enumerate(file.view_changes):
        find(entry.course, courses, f"view_changes[{index}].course")
        for number in filter(None, (entry.before, entry.after)):
            find(number, runs, f"view_changes[{index}]")
    for index, generation in enumerate(file.generations):
        if generation.sent.view is not None:
            find(generation.sent.view, runs, f"generations[{index}].sent.view")


def check_calls(file: DialogFile) -> None:
    messages = {entry.seq: entry for entry in file.messages}
    once(((entry.message, entry.position) for entry in file.calls), "calls", "position")
    once(((entry.message, entry.call_id) for entry in file.calls), "calls", "call_id")
    results = (entry.result_message for entry in file.calls if entry.result_message is not None)
    known = once(results, "calls", "result_message")
    for index, call in enumerate(file.calls):
        _check_call(call, messages, f"calls[{index}]")
    for index, message in enumerate(file.messages):
        if message.role == Role.TOOL:
            _check_result(message, known, f"messages[{index}]")
    _check_rounds(file)


def _check_call(call: CallEntry, messages: Messages, path: str) -> None:
    find(call.message, messages, f"{path}.message")
    caller = messages[call.message]
    if not call.call_id:
        Place(None, f"{path}.call_id").refuse(_("must not be empty."))
    if caller.role != Role.ASSISTANT:
        Place(None, f"{path}.message").refuse(_("must be an answer of the agent."))
    if call.result_message is None:
        return
    find(call.result_message, messages, f"{path}.result_message")
    result = messages[call.result_message]
    if (result.role, result.course) != (Role.TOOL, caller.course):
        Place(None, f"{path}.result_message").refuse(_("must be a tool's message in the course of the call."))
    if result.parts.get("tool_call_id") != call.call_id:
        Place(None, f"{path}.result_message").refuse(_("must be a message with the “tool_call_id” of the call."))


def _check_result(message: MessageEntry, known: set[object], path: str) -> None:
    if message.seq not in known:
        Place(None, path).refuse(_("must be the result of a call."))
    if not isinstance(message.parts.get("withheld", ""), str):
        Place(None, f"{path}.parts.withheld").refuse(_("must be a text."))


def _check_rounds(file: DialogFile) -> None:
    children = children_of(file)
    for caller, calls in rounds(file).items():
        if not is_whole(caller, calls, children, file.current_leaf):
            Place(None, "calls").refuse(
                _("of message %(number)s must all be followed by their results, in order.") % {"number": caller}
            )


def children_of(file: DialogFile) -> Children:
    children: Children = defaultdict(list)
    for message in file.messages:
        if message.parent is not None:
            children[message.parent].append(message.seq)
    return children


def is_whole(caller: int, calls: list[CallEntry], children: Children, leaf: int | None) -> bool:
    """Whether a round is whole: all results follow, in the calls' order and with nothing between; or none, and nothing
    else either."""
    results = [call.result_message for call in calls if call.result_message is not None]
    chain = [caller, *results]
    complete = len(results) in (0, len(calls))
    in_order = all(children[above] == [below] for above, below in pairwise(chain))
    open_at_end = bool(results) or not children[caller]
    return complete and in_order and open_at_end and leaf not in chain[: len(results)]


def rounds(file: DialogFile) -> dict[int, list[CallEntry]]:
    """The calls of each message that made some, in their order."""
    found: defaultdict[int, list[CallEntry]] = defaultdict(list)
    for call in sorted(file.calls, key=lambda call: (call.message, call.position)):
        found[call.message].append(call)
    return dict(found)
