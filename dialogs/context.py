"""The border post between what is stored and what is sent. The only file that knows both.

Sent is the current course: one system message (instructions, Taskdoc, reminders), then its branch as it was
said. Of the messages that the driver inserted only the newest goes along, and none twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialogs.models import Dialog, Message, RemediationPrompt, Reminder, ToolCall
from dialogs.models.message import INSERTED, MessageOrigin, Role
from dialogs.prompts import prompt
from dialogs.providers.base import ChatMessage, ChatRequest
from dialogs.providers.base import ToolCall as AskedCall


@dataclass(frozen=True, kw_only=True)
class Context:
    """All that the model is to see. `notice` belongs to the typed message `notice_on`, if to any."""

    dialog: Dialog
    branch: tuple[Message, ...]
    calls: dict[int, tuple[ToolCall, ...]]
    reminders: tuple[Reminder, ...]
    notice: str = ""
    notice_on: int | None = None

    @property
    def sent(self) -> tuple[Message, ...]:
        """The messages of the branch that go along."""
        newest = self.notice_on or max((m.pk for m in self.branch if m.origin in INSERTED), default=None)
        return tuple(
            message
            for message in self.branch
            if (message.origin not in INSERTED or message.pk == newest)
            and (message.content or message.pk in self.calls or message.role == Role.TOOL)
        )


def read_context(dialog: Dialog, branch: Sequence[Message]) -> Context:
    """The context of a dialog whose current course's branch is this."""
    ids = [message.pk for message in branch]
    calls: dict[int, tuple[ToolCall, ...]] = {}
    for call in ToolCall.objects.filter(message_id__in=ids):
        calls[call.message_id] = (*calls.get(call.message_id, ()), call)
    newest = RemediationPrompt.objects.filter(message_id__in=ids).order_by("message__seq").last()
    carries = newest is not None and newest.notice and not _pushed_since(newest, branch)
    return Context(
        dialog=dialog,
        branch=tuple(branch),
        calls=calls,
        reminders=tuple(Reminder.objects.filter(dialog=dialog, removed_at=None)),
        notice=newest.notice if newest and carries else "",
        notice_on=newest.message_id if newest and carries else None,
    )


def _pushed_since(newest: RemediationPrompt, branch: Sequence[Message]) -> bool:
    return any(message.origin == MessageOrigin.PUSH and message.pk > newest.message_id for message in branch)


def chat_request(context: Context, *, tools: Sequence[dict[str, Any]] = ()) -> ChatRequest:
    """The request for the next generation."""
    text = system_text(context)
    system = (ChatMessage(role="system", content=text),) if text else ()
    return ChatRequest(
        model=context.dialog.llm.model_id,
        messages=system + tuple(_merged(_wire(message, context) for message in context.sent)),
        tools=tuple(tools),
        max_output_tokens=context.dialog.agent.max_output_tokens,
    )


def system_text(context: Context) -> str:
    return prompt(
        "system",
        language=context.dialog.work_language,
        instructions=context.dialog.agent.instructions.strip(),
        taskdoc=context.dialog.taskdoc.strip(),
        reminders=context.reminders,
    )


def _wire(message: Message, context: Context) -> ChatMessage:
    role = Role(message.role).value
    if role == Role.TOOL:
        content = message.parts.get("withheld") or message.content
        return ChatMessage(role=role, content=content, tool_call_id=message.parts["tool_call_id"])
    if message.pk == context.notice_on:
        return ChatMessage(role=role, content=f"{message.content}\n\n{context.notice}")
    calls = tuple(
        AskedCall(id=call.call_id, name=call.name, arguments=call.arguments or "{}")
        for call in context.calls.get(message.pk, ())
    )
    return ChatMessage(role=role, content=message.content, tool_calls=calls)


def _merged(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Messages of one role that follow one another become one: many chat templates refuse them.

    They do so where the prompt between two answers is left out, and where a message has had no answer.
    """
    merged: list[ChatMessage] = []
    for message in messages:
        last = merged[-1] if merged else None
        if last is None or last.role != message.role or message.role == Role.TOOL or last.tool_calls:
            merged.append(message)
        else:
            content = "\n\n".join(filter(None, (last.content, message.content)))
            merged[-1] = replace(message, content=content)
    return merged
