"""A client's conversation as a dialog that people write in the browser: what becomes of it when it is imported. Pure.

No client knows the copy. The instructions become its Taskdoc, so that its agent goes on by them; the client's tools
and options are left out, for they run and hold there. Providers demand more order of calls and results than clients
keep: a round that is not whole is told in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dialogs.agents.writes.reminders import TASKDOC_CHARS
from dialogs.models.message import MessageOrigin, Role
from dialogs.transfer.laws_of_calls import Children, children_of, is_whole, rounds
from dialogs.transfer.shape import CallEntry, DialogFile, MessageEntry

Rounds = Mapping[int, list[CallEntry]]
CUT_OFF = "\n[cut off: {count:,} characters in all]"


def as_ordinary(file: DialogFile) -> DialogFile:
    """The file itself where no client drove the dialog. Not checked yet: nothing here relies on a law."""
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
    """Calls below the words of the answer that made them, results as messages of the user's."""
    results = {call.result_message for calls in whole.values() for call in calls}
    names = {call.result_message: call.name for calls in told.values() for call in calls}
    return tuple(
        _result(entry, names.get(entry.seq, ""))
        if entry.role == Role.TOOL and entry.seq not in results
        else _caller(entry, told.get(entry.seq, ()))
        for entry in file.messages
    )


def _caller(entry: MessageEntry, calls: list[CallEntry] | tuple[()]) -> MessageEntry:
    if not calls:
        return entry
    words = [f"[called {call.name} with {call.arguments or '{}'}]" for call in calls]
    return replace(entry, content="\n".join(filter(None, [entry.content, *words])))


def _result(entry: MessageEntry, name: str) -> MessageEntry:
    words = f"[result of {name or entry.parts.get('tool_call_id', '')}]\n{entry.content}"
    parts = {key: value for key, value in entry.parts.items() if key != "tool_call_id"}
    return replace(entry, role=Role.USER.value, origin=MessageOrigin.CLIENT.value, content=words, parts=parts)
