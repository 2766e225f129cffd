"""Laws of a whole dialog file: references lead to entries, levels follow from their numbers, and on every branch each
call is followed by its result.

A round is the calls of one message. Its results follow that message as a chain, in the calls' order. An open round has
no results, and nothing else follows. An unsound view is no reason to refuse a file: `adapting.py` drops it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from operator import attrgetter
from typing import Any, NoReturn

from django.utils.translation import gettext as _
from pydantic import ValidationError

from dialogs.agents.writes import MOST_REMINDERS
from dialogs.api.schemas import ChatMessage
from dialogs.common.errors import DialogError
from dialogs.common.file_fields import Record
from dialogs.common.text import storable
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.attachments import hashes_in
from dialogs.transfer.references import references_in
from dialogs.transfer.shape import CallEntry, DialogFile, GenerationEntry, MessageEntry, ReadingEntry, UsageEntry
from dialogs.transfer.shape_views import HOLDS, CompactionEntry, Status
from health.monitor.levels import Configured, Usage, UsageUnavailable, read

# For each list that is referred to: the field with the number of its entries.
NUMBERS = {"courses": "number", "messages": "seq", "reminders": "number", "compactions": "number"}
# A list, and fields whose values together are unique in it; null may be repeated.
UNIQUE = (
    *NUMBERS.items(),
    ("generations", "course", "number"),
    ("generations", "message"),
    ("calls", "message", "position"),
    ("calls", "message", "call_id"),
    ("calls", "result_message"),
    ("prompts", "message"),
    ("marks", "message"),
)
# The roles of an origin; all others have role user.
ROLES = {
    MessageOrigin.AGENT: {Role.ASSISTANT},
    MessageOrigin.TOOL: {Role.TOOL},
    MessageOrigin.CLIENT: {Role.USER, Role.ASSISTANT, Role.SYSTEM},
}
Messages = dict[int, MessageEntry]
# The messages that follow each one.
Children = defaultdict[int, list[int]]


def refuse(path: str, problem: str) -> NoReturn:
    where = {"where": path.removeprefix(".") or _("the file"), "problem": problem}
    raise DialogError(storable(_("The dialog file cannot be read: %(where)s %(problem)s") % where))


def check_whole(file: DialogFile) -> None:
    for entries, *names in UNIQUE:
        _check_unique(entries, names, getattr(file, entries))
    known = {entries: set(map(attrgetter(name), getattr(file, entries))) for entries, name in NUMBERS.items()}
    _check_references(file, known | {"texts": set(range(len(file.texts)))}, "")
    for index, message in enumerate(file.messages):
        _check_message(message, f"messages[{index}]")
    for index, generation in enumerate(file.generations):
        _check_reading(generation, f"generations[{index}].reading")
    _check_calls(file)
    _check_reminders(file)
    _check_carried(file)
    _check_prompts(file)
    _check_runs(file)
    _check_views(file)


def _check_unique(entries: str, names: list[str], rows: tuple[Record, ...]) -> None:
    seen: set[object] = set()
    for value in map(attrgetter(*names), rows):
        if value in seen:
            field = {"field": names[-1], "value": value}
            refuse(entries, _("has the same “%(field)s” twice: %(value)s.") % field)
        if value is not None:
            seen.add(value)


def _check_references(entry: Record, known: Mapping[str, set[object]], path: str) -> None:
    """Everything that this entry, or one inside it, refers to exists."""
    for name, entries in references_in(type(entry)).items():
        _check_found(getattr(entry, name), known[entries], f"{path}.{name}")
    for name, value in vars(entry).items():
        if isinstance(value, Record):
            _check_references(value, known, f"{path}.{name}")
        elif isinstance(value, tuple) and value and isinstance(value[0], Record):
            for index, one in enumerate(value):
                _check_references(one, known, f"{path}.{name}[{index}]")


def _check_found(named: Any, known: set[object], path: str) -> None:
    if isinstance(named, dict):
        for key, number in named.items():
            _check_found(number, known, f"{path}.{key}")
        return
    numbers = named if isinstance(named, tuple) else {named} - {None}
    if not known.issuperset(numbers):
        number = min(set(numbers) - known)
        refuse(path, _("refers to %(number)s, which the file does not have.") % {"number": number})


def _check_message(entry: MessageEntry, path: str) -> None:
    if entry.role not in ROLES.get(MessageOrigin(entry.origin), {Role.USER}):
        refuse(f"{path}.role", _("does not fit the origin."))
    if entry.parent is not None and entry.parent >= entry.seq:
        refuse(f"{path}.parent", _("must come before its child."))
    _check_parts(entry, path)


def _check_reading(entry: GenerationEntry, path: str) -> None:
    if entry.reading is not None and not _follows(entry.reading, usage_of(entry)):
        refuse(path, _("does not follow from the usage and the ceilings beside it."))


def _check_reminders(file: DialogFile) -> None:
    if sum(entry.removed_at is None for entry in file.reminders) > MOST_REMINDERS:
        refuse("reminders", _("may have at most %(most)s that stand.") % {"most": MOST_REMINDERS})


def _check_carried(file: DialogFile) -> None:
    asked = {(entry.message, entry.position) for entry in file.calls if entry.question is not None}
    for index, entry in enumerate(file.courses):
        places = entry.carried.questions if entry.carried is not None else ()
        if not asked.issuperset((place.message, place.position) for place in places):
            refuse(f"courses[{index}].carried.questions", _("must be calls that ask something."))


def _check_prompts(file: DialogFile) -> None:
    said = {entry.seq for entry in file.messages if entry.role == Role.USER}
    for index, entry in enumerate(file.prompts):
        if entry.message not in said:
            refuse(f"prompts[{index}].message", _("must be a message to the agent."))


def _check_runs(file: DialogFile) -> None:
    for index, entry in enumerate(file.runs):
        if (entry.ended_at is None) != (not entry.ended_by):
            refuse(f"runs[{index}].ended_by", _("must be given with the end, and only then."))


def usage_of(entry: GenerationEntry) -> Usage | UsageUnavailable:
    if not isinstance(entry.usage, UsageEntry):
        return UsageUnavailable()
    return Usage(**vars(entry.usage))


def judged_by(entry: ReadingEntry) -> Configured:
    """The limits by which the reading was made."""
    return Configured(
        context_length=entry.context_window,
        optimal_max_tokens=entry.optimal_max_tokens,
        critical_max_tokens=entry.critical_max_tokens,
    )


def _follows(entry: ReadingEntry, usage: Usage | UsageUnavailable) -> bool:
    verdict = read(usage, judged_by(entry))
    return (verdict.level, verdict.reason) == (entry.level, entry.reason)


FIELDS = frozenset({"content", "name"})
HANDOVER_FIELDS = {"text": str, "tokens": int, "away": bool}
# Missing in older files.
MORE_OF_HANDOVER = {"laid_down": str}


def _check_parts(entry: MessageEntry, path: str) -> None:
    """Hashes are refused: a reference to a text that is stored already might show another person's."""
    handover = entry.parts.get("handover")
    if handover is not None and (entry.origin != MessageOrigin.HANDOVER or not _is_handover(handover)):
        refuse(f"{path}.parts.handover", _("must be a text with its size in tokens."))
    if "wire" not in entry.parts:
        return
    if not _is_sound(entry.parts["wire"]) or next(hashes_in([entry.parts]), None):
        refuse(f"{path}.parts.wire", _("must be content parts as the API takes them."))


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


def _check_views(file: DialogFile) -> None:
    courses = {entry.seq: entry.course for entry in file.messages}
    runs: dict[int, CompactionEntry] = {}
    for index, run in enumerate(file.compactions):
        _check_compaction(run, courses[run.leaf], runs, f"compactions[{index}]")
        runs[run.number] = run
    for index, course in enumerate(file.courses):
        if course.head is not None:
            _check_holds(runs[course.head], course.number, (Status.APPLIED,), f"courses[{index}].head")


def _check_compaction(entry: CompactionEntry, course: int, earlier: dict[int, CompactionEntry], path: str) -> None:
    if entry.course != course:
        refuse(f"{path}.leaf", _("must be a message of the run's course."))
    if any(seen.message is None and seen.content is None for seen in entry.view):
        refuse(f"{path}.view", _("must have a text where there is no message."))
    if entry.parent is not None:
        _check_holds(earlier.get(entry.parent), entry.course, HOLDS, f"{path}.parent")


def _check_holds(run: CompactionEntry | None, course: int, states: tuple[str, ...], path: str) -> None:
    if run is None or run.course != course or run.status not in states:
        refuse(path, _("must be a compaction of the same course whose view holds."))


def _check_calls(file: DialogFile) -> None:
    messages = {entry.seq: entry for entry in file.messages}
    results = {entry.result_message for entry in file.calls}
    for index, call in enumerate(file.calls):
        _check_call(call, messages, f"calls[{index}]")
    for index, message in enumerate(file.messages):
        if message.role == Role.TOOL:
            _check_result(message, results, f"messages[{index}]")
    _check_rounds(file)


def _check_call(call: CallEntry, messages: Messages, path: str) -> None:
    caller = messages[call.message]
    if not call.call_id:
        refuse(f"{path}.call_id", _("must not be empty."))
    if caller.role != Role.ASSISTANT:
        refuse(f"{path}.message", _("must be an answer of the agent."))
    if call.result_message is None:
        return
    result = messages[call.result_message]
    if (result.role, result.course) != (Role.TOOL, caller.course):
        refuse(f"{path}.result_message", _("must be a tool's message in the course of the call."))
    if result.parts.get("tool_call_id") != call.call_id:
        refuse(f"{path}.result_message", _("must be a message with the “tool_call_id” of the call."))


def _check_result(message: MessageEntry, results: set[int | None], path: str) -> None:
    if message.seq not in results:
        refuse(path, _("must be the result of a call."))
    if not isinstance(message.parts.get("withheld", ""), str):
        refuse(f"{path}.parts.withheld", _("must be a text."))


def _check_rounds(file: DialogFile) -> None:
    children = children_of(file)
    for caller, calls in rounds(file).items():
        if not is_whole(caller, calls, children, file.current_leaf):
            problem = _("of message %(number)s must all be followed by their results, in order.")
            refuse("calls", problem % {"number": caller})


def children_of(file: DialogFile) -> Children:
    children: Children = defaultdict(list)
    for message in file.messages:
        if message.parent is not None:
            children[message.parent].append(message.seq)
    return children


def is_whole(caller: int, calls: list[CallEntry], children: Children, leaf: int | None) -> bool:
    """Do all results follow, in the calls' order, with nothing between? Or nothing at all, in an open round?"""
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
