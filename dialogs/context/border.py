"""Turns stored messages into the messages of a request. The only file that knows both forms.

A request has the current course: one system message (instructions, Taskdoc, reminders), then its branch, or the view
that compaction made of it. Of the messages that the driver inserted only the newest is sent. Where a view is a sliding
window, the task block is added to the newest message or result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.functional import cached_property

from dialogs.context.beginning import Beginning, beginning_of, standing_now, task_block
from dialogs.llms.guard import Guard
from dialogs.llms.reads import max_output_of
from dialogs.models import ClientConversation, Course, Dialog, Message, MessageMark, RemediationPrompt, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.providers.base import ChatMessage, ChatRequest
from dialogs.providers.base import ToolCall as AskedCall
from dialogs.providers.laws import begun_by_a_user, merged, paired, shaped, without_calls
from dialogs.transcript import model_view
from dialogs.transcript.attachments import blobs_of, with_blobs
from dialogs.transcript.model_view import CONTINUATION, Entry, Ids, Piece, marked_since, marks_of, own_messages, sent_of
from dialogs.transcript.reads.path import course_branch, messages_with_ids, said_since, with_continuations
from dialogs.transcript.reads.tool_calls import ASK_HUMAN, calls_by_message, offers_own_tools
from dialogs.turns.prompts import prompt
from dialogs.turns.reads.remediation import newest_prompt_in, newest_prompt_on
from health.models import CompactionRun

# Whether a call of a tool failed, by how it ended.
_ENDED = {ToolCall.Status.DONE: False, ToolCall.Status.FAILED: True, ToolCall.Status.INTERRUPTED: True}

# How `templates/prompts/<language>/system.txt` heads its sections.
_HEADING = re.compile(
    r"(?m)^( {0,3})(?=#{1,6}[ \t]*+(?:Standing rules|No longer in force|Goal|Taskdoc|Reminder"
    r"|长期规则|已经失效|目标|任务书|提醒))",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Context:
    """All that the model is to see. `notice` belongs to the typed message `notice_on`, if to any.
    `urge` is said below the newest message, where the model's last answer to it was empty.

    `branch` are the stored messages in question, `view` what is sent of them; None: all, as they were said. `kept` are
    rounds of messages in it, marked to stay since it was made. Not `is_whole`: no more was read than what it shows.
    """

    dialog: Dialog
    branch: tuple[Message, ...]
    calls: dict[int, tuple[ToolCall, ...]]
    beginning: Beginning
    notice: str = ""
    notice_on: int | None = None
    urge: str = ""
    view: tuple[Entry, ...] | None = None
    run_id: int | None = None
    kept: tuple[Ids, ...] = ()
    # What a client asks for beside its messages; None where a person drives the dialog.
    client: ClientConversation | None = None
    # Texts by their hash, of which messages hold only that: images.
    blobs: Mapping[str, str] = field(default_factory=dict)
    # The task's progress, where it is part of the request.
    task: str = ""
    is_whole: bool = True

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """What is sent after the system message, in order."""
        view = model_view.as_said(self.branch) if self.view is None else self.view
        found = (Piece(entry, self._by_id.get(entry.message_id or 0)) for entry in view)
        pieces = [piece for piece in found if self._is_something(piece)]
        inserted = [piece for piece in pieces if piece.is_inserted]
        if not inserted:
            return tuple(pieces)
        prompts = (piece.message.pk for piece in inserted if piece.message and not piece.asks_to_go_on)
        newest = self.notice_on or max(prompts, default=None)
        # Once the model has gone on, both pieces are one answer.
        asking = self.branch[-1].pk if self.branch else None
        return tuple(
            piece
            for piece in pieces
            if not piece.is_inserted or piece.entry.message_id == (asking if piece.asks_to_go_on else newest)
        )

    @cached_property
    def said(self) -> tuple[ChatMessage, ...]:
        """One message for each piece. An answer that was cut and then gone on with becomes one message."""
        wired: list[ChatMessage] = []
        before: Piece | None = None
        for piece in self.pieces:
            sent = _wire(piece, self)
            if before is not None and sent.role == Role.ASSISTANT and self.goes_on(piece, before):
                wired[-1] = replace(sent, content=wired[-1].content + sent.content)
            else:
                wired.append(sent)
            before = piece
        return tuple(wired)

    @cached_property
    def marks(self) -> Mapping[int, MessageMark]:
        """What people have marked of the branch. Read when something is compacted: a request is made without."""
        return marks_of(self.branch)

    @cached_property
    def spoken(self) -> frozenset[int]:
        """The results that are a person's answers to what the agent asked."""
        answered = (call for calls in self.calls.values() for call in calls if call.name == ASK_HUMAN)
        done = (call.result_message_id for call in answered if call.status == ToolCall.Status.DONE)
        return frozenset(one for one in done if one is not None)

    @cached_property
    def failed(self) -> Mapping[int, bool]:
        """Which results of our own tools are failures, by message id. A result of a client's tool says so in words."""
        made = (call for calls in self.calls.values() for call in calls if call.name != ASK_HUMAN)
        return {
            call.result_message_id: _ENDED[ToolCall.Status(call.status)]
            for call in made
            if call.result_message_id is not None and call.status in _ENDED
        }

    @cached_property
    def _by_id(self) -> dict[int, Message]:
        return {message.id: message for message in self.branch}  # `pk` takes two steps more, hundreds of times

    def goes_on(self, piece: Piece, before: Piece) -> bool:
        """Are these two messages pieces of one answer, which was cut between them?"""
        if piece.message is None or before.message is None:
            return False
        asked = self._by_id.get(piece.message.parent_id or 0)
        return asked is not None and asked.origin == CONTINUATION and asked.parent_id == before.message.pk

    def _is_something(self, piece: Piece) -> bool:
        said = piece.content or piece.entry.message_id in self.calls or piece.role == Role.TOOL
        return bool(said or self._was_sent(piece))

    def _was_sent(self, piece: Piece) -> bool:
        """A client's message that says nothing is a turn all the same: without it others would stand side by side."""
        message = piece.message
        if message is None or self.client is None or piece.entry.content is not None:
            return False
        return message.origin == MessageOrigin.CLIENT or any(
            one.origin == MessageOrigin.CLIENT for one in self.branch if one.seq > message.seq
        )

    @property
    def sent(self) -> tuple[Message, ...]:
        """The stored messages that go along, shortened ones included."""
        return tuple(piece.message for piece in self.pieces if piece.message is not None)

    def seeing(self, view: Sequence[Entry]) -> Context:
        """The same context with another view."""
        return replace(self, view=tuple(view), run_id=None).rewritten()

    def rewritten(self) -> Context:
        """This context with a beginning of what stands now, as after a compaction."""
        now = standing_now(self.dialog)
        return replace(self, beginning=replace(self.beginning, first=now, changed=""))

    def whole(self) -> Context:
        """The course as it was said, whatever was compacted, with the quotes that a person brought back into it. Reads
        the database where not all of the course has been read."""
        found = self if self.is_whole else replace(self, **_of_messages(course_branch(self.branch[-1])), is_whole=True)
        return found.seeing(model_view.as_said_with_quotes(self.view or (), found.branch))


def read_context(dialog: Dialog, branch: Sequence[Message], guard: Guard | None = None) -> Context:
    """The context of a dialog whose current course's branch is this; with its guard, where that is known already.
    Until a view holds, what a client left out of its newest request is not sent."""
    ids = [message.id for message in branch]
    run = model_view.holding(_course(dialog, branch[-1]).head_run, frozenset(ids)) if branch else None
    if run is None and branch and dialog.is_client_driven and branch[-1].seq > dialog.client.sends_after:
        sent = sent_of(dialog.client, branch)
        return replace(_read(dialog, sent, None, None, (), guard), is_whole=sent is branch)
    newest = None if dialog.is_client_driven else newest_prompt_on.first(ids)
    return _with_own(_read(dialog, branch, run, newest, marked_since(run) if run else (), guard))


def _with_own(context: Context) -> Context:
    """A view, behind what the client says in front of it: that is stored nowhere else."""
    own = own_messages(context.client) if context.client else []
    if not own:
        return context
    view = (*model_view.as_said(own), *(context.view or ()))
    return replace(context, branch=(*own, *context.branch), view=view, is_whole=False)


def read_seen(dialog: Dialog, guard: Guard | None) -> Context | None:
    """The context of the branch that is shown, with no more messages than the model sees, however long the course is.

    None where no view holds, or where a message that the model does not see plays a part: then all is to be read.
    """
    leaf = dialog.current_leaf
    run = _course(dialog, leaf).head_run if leaf else None
    while run is not None and run.status == CompactionRun.Status.UNDONE:
        run = run.parent_run
    since = said_since(run, leaf) if run and leaf else None
    if run is None or leaf is None or since is None:
        return None
    shown = [entry["message"] for entry in run.view if entry.get("message")]
    branch = with_continuations((*messages_with_ids(shown, leaf), *since), leaf)
    newest = None if dialog.is_client_driven else newest_prompt_in.first(leaf.course_id)
    marked = marked_since(run)
    if not {message.pk for message in branch}.issuperset([*marked, *([newest.message_id] if newest else [])]):
        return None
    return _with_own(replace(_read(dialog, branch, run, newest, marked, guard), is_whole=False))


def _read(
    dialog: Dialog,
    branch: Sequence[Message],
    run: CompactionRun | None,
    newest: RemediationPrompt | None,
    marked: Sequence[int],
    guard: Guard | None,
) -> Context:
    """`run` made the view that holds; `marked` was to stay since. `newest`: the branch's last prompt of remediation."""
    of_messages = _of_messages(branch)
    kept = model_view.rounds_with(marked, branch) if marked else ()
    carries = newest is not None and newest.notice and not _pushed_since(newest, branch)
    return Context(
        dialog=dialog,
        **of_messages,
        beginning=beginning_of(dialog, branch, of_messages["calls"], view=run.pk if run else None),
        notice=newest.notice if newest and carries else "",
        notice_on=newest.message_id if newest and carries else None,
        view=model_view.with_rounds(model_view.view_of(run, branch), kept, branch),
        run_id=run.pk if run else None,
        kept=kept,
        client=dialog.client if dialog.is_client_driven else None,
        task=task_block(dialog, guard),
    )


def _of_messages(branch: Sequence[Message]) -> dict[str, Any]:
    """The fields of a context that these messages make."""
    return {
        "branch": tuple(branch),
        "calls": calls_by_message([message.id for message in branch if message.role == Role.ASSISTANT]),
        "blobs": blobs_of(message.parts for message in branch),
    }


def _course(dialog: Dialog, last: Message) -> Course:
    """The course with its view that holds; often both have been read already, with the dialog."""
    leaf = dialog.current_leaf
    if leaf is not None and "course" in leaf._state.fields_cache and leaf.course_id == last.course_id:
        return leaf.course
    return Course.objects.select_related("head_run").get(pk=last.course_id)


def _pushed_since(newest: RemediationPrompt, branch: Sequence[Message]) -> bool:
    return any(message.origin == MessageOrigin.PUSH and message.pk > newest.message_id for message in branch)


def chat_request(context: Context, *, tools: Sequence[dict[str, Any]] = ()) -> ChatRequest:
    """The next request. What a client said and nobody compacted goes on so, but for calls without results."""
    text, client = system_text(context), context.client
    system = (ChatMessage(role="system", content=text),) if text else ()
    messages = _with_changes([*system, *context.said], context.beginning.changed)
    messages = messages if client is None else paired(messages)
    if client is None or context.run_id is not None:
        is_without_tools = client is None and not tools and not offers_own_tools(context.dialog)
        # In an order that every server takes, whatever was left out.
        messages = merged(without_calls(messages) if is_without_tools else messages)
        messages = _with_task(begun_by_a_user(messages), context.task)
    return ChatRequest(
        model=context.dialog.llm.model_id,
        messages=tuple(shaped(messages, context.dialog.llm.message_shape)),
        tools=tuple(tools),
        max_output_tokens=max_output_of(context.dialog),
        context_window=context.dialog.llm.context_length,
        options=client.options if client else {},
    )


def instructions_of(context: Context) -> str:
    """The agent's, and after them the client's own."""
    own = context.client.instructions if context.client else ""
    return "\n\n".join(filter(None, (context.dialog.agent.instructions.strip(), own)))


def system_text(context: Context) -> str:
    """Instructions, standing rules that a person changed by hand, and for an agent of ours Taskdoc and reminders: as
    they were at the last rewrite."""
    first = context.beginning.first
    if context.client and not (first.rules or first.taken_back or first.reminders):
        return instructions_of(context)
    return prompt(
        "system",
        language=context.dialog.work_language,
        instructions=instructions_of(context),
        rules=first.rules,
        taken_back=first.taken_back,
        goal=first.goal,
        taskdoc=_as_note(first.taskdoc),
        reminders=[(one, _as_note(one.text)) for one in first.reminders],
        reads_reminders=offers_own_tools(context.dialog),
    )


def _as_note(text: str) -> str:
    """Escape an agent's text, perhaps from a web page, so that no line looks like a heading of the system message."""
    return _HEADING.sub(r"\1\\", text)


def _wire(piece: Piece, context: Context) -> ChatMessage:
    message = piece.message
    if message is None:
        return ChatMessage(role=piece.role.value, content=piece.content)
    role = str(message.role)
    if role == Role.TOOL:
        sent = ChatMessage(role=role, content=piece.content, tool_call_id=message.parts["tool_call_id"])
    elif below := said_below(message, context):
        return ChatMessage(role=role, content="\n\n".join((piece.content, *below)))
    else:
        sent = ChatMessage(role=role, content=piece.content, tool_calls=_asked(message, context))
    return _as_client_said(sent, piece, context) if "wire" in message.parts else sent


def said_below(message: Message, context: Context) -> tuple[str, ...]:
    """The texts that Dominds adds below a typed message."""
    notice = context.notice if message.id == context.notice_on else ""
    urge = context.urge if context.urge and message.id == context.branch[-1].id else ""
    return tuple(filter(None, (notice, urge)))


def _asked(message: Message, context: Context) -> tuple[AskedCall, ...]:
    calls = context.calls.get(message.id, ())
    return tuple(AskedCall(id=call.call_id, name=call.name, arguments=call.arguments or "{}") for call in calls)


def _as_client_said(sent: ChatMessage, piece: Piece, context: Context) -> ChatMessage:
    parts = tuple(with_blobs(part, context.blobs) for part in piece.parts)
    name = piece.message.parts["wire"].get("name", "") if piece.message else ""
    return replace(sent, parts=parts, name=name)


def _with_changes(messages: list[ChatMessage], changed: str) -> list[ChatMessage]:
    """Add the note of changes above the newest user message, or below a tool's result."""
    told = [at for at, message in enumerate(messages) if message.role in (Role.USER, Role.TOOL)]
    if not changed or not told:
        return messages
    carrier = messages[told[-1]]
    below = carrier.role == Role.TOOL
    content = "\n\n".join((carrier.content, changed) if below else (changed, carrier.content))
    parts = ({"type": "text", "text": changed}, *carrier.parts) if carrier.parts else ()
    return [*messages[: told[-1]], replace(carrier, content=content, parts=parts), *messages[told[-1] + 1 :]]


def _with_task(messages: list[ChatMessage], task: str) -> list[ChatMessage]:
    """Below the newest that the model is told, in words or as a result: what stands before that begins as in the
    request before, and can be cached."""
    told = [at for at, message in enumerate(messages) if message.role in (Role.USER, Role.TOOL)]
    if not task:
        return messages
    if not told:
        return [*messages, ChatMessage(role=Role.USER, content=task)]
    carrier = messages[told[-1]]
    parts = (*carrier.parts, {"type": "text", "text": task}) if carrier.parts else ()
    carrying = replace(carrier, content="\n\n".join(filter(None, (carrier.content, task))), parts=parts)
    return [*messages[: told[-1]], carrying, *messages[told[-1] + 1 :]]
