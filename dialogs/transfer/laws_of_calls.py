"""Laws of tool calls in a dialog file: whatever branch is shown, each result follows its call and no call lacks one.

A round is the calls of one message. Its results follow that message as a chain, in the calls' order; while a
round is open there are none, and nothing else may follow.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from django.utils.translation import gettext as _

from dialogs.models.message import Role
from dialogs.transfer.place import Place, find, once
from dialogs.transfer.shape import CallEntry, DialogFile, MessageEntry

Messages = dict[int, MessageEntry]
# The messages that follow each one.
Children = defaultdict[int, list[int]]


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
    """All results follow, in the calls' order and with nothing between; or none, and nothing else either."""
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
