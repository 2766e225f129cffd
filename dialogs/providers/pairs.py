"""The laws of a valid request, as strict providers enforce them. Pure: the first broken law in words, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from dialogs.providers.base import ChatMessage

ROLES = frozenset({"system", "user", "assistant", "tool"})


def broken_law(messages: Sequence[ChatMessage]) -> str:
    """Empty when the request is valid."""
    return next(filter(None, (law(messages) for law in LAWS)), "")


def _roles_are_known(messages: Sequence[ChatMessage]) -> str:
    strange = next((message.role for message in messages if message.role not in ROLES), None)
    return f"the role {strange!r} is unknown" if strange is not None else ""


def _system_comes_first(messages: Sequence[ChatMessage]) -> str:
    roles = [message.role == "system" for message in messages]
    return "a system message comes after others" if roles != sorted(roles, reverse=True) else ""


def _calls_and_results_are_paired(messages: Sequence[ChatMessage]) -> str:
    """Every call is answered once, right after the message that made it; every result has its call."""
    unanswered: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in unanswered:
                return f"{message.tool_call_id!r} is the result of no open call"
            unanswered.discard(message.tool_call_id)
            continue
        if unanswered:
            break
        unanswered = {call.id for call in message.tool_calls}
        if len(unanswered) < len(message.tool_calls):
            return "two calls have one id"
    return f"the calls {sorted(unanswered)} have no results" if unanswered else ""


def _somebody_waits_for_an_answer(messages: Sequence[ChatMessage]) -> str:
    return "" if messages and messages[-1].role in {"user", "tool"} else "there is nothing to answer"


LAWS = (_roles_are_known, _system_comes_first, _calls_and_results_are_paired, _somebody_waits_for_an_answer)
