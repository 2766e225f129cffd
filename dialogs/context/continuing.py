"""How a request asks for the rest of an answer that was cut for a compaction.

Where the LLM is known to go on with an answer that ends the request, that is all it is sent. Any other is asked to, by
the message that was stored for it. In both cases the end of the answer stands before it, however much was compacted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dialogs.context.border import Context
from dialogs.models import Message
from dialogs.models.llm import Prefill
from dialogs.models.message import MessageOrigin
from dialogs.providers.base import ChatRequest
from dialogs.transcript import model_view
from dialogs.transcript.model_view import Entry

# How much of an answer's end is sent, whatever compaction made of it.
TAIL_CHARS = 800
LEFT_OUT = "[…] "


def cut_answer(branch: Sequence[Message]) -> tuple[Message, ...]:
    """The pieces of the answer that is to be gone on with, oldest first; empty where none is."""
    at = branch[-1] if branch else None
    if at is None or at.origin != MessageOrigin.CONTINUATION:
        return ()
    said = {message.pk: message for message in branch}
    pieces: list[Message] = []
    while at is not None and at.origin == MessageOrigin.CONTINUATION and (cut := said.get(at.parent_id or 0)):
        pieces.append(cut)
        at = said.get(cut.parent_id or 0)
    return tuple(reversed(pieces))


def continuing(context: Context) -> Context:
    """The context made to ask for the rest of an answer that was cut, where one was; else the context itself."""
    pieces = cut_answer(context.branch)
    if not pieces:
        return context
    asking, last = context.branch[-1], pieces[-1]
    view = [entry for entry in context.view or model_view.as_said(context.branch) if entry.message_id != asking.pk]
    view = _ending_with(pieces, [entry for entry in view if entry.message_id != last.pk], _seen(view, last))
    if context.dialog.llm.prefill != Prefill.CONTINUES:
        view.append(Entry(message_id=asking.pk))
    return replace(context, view=tuple(view))


def _seen(view: Sequence[Entry], message: Message) -> Entry | None:
    return next((entry for entry in view if entry.message_id == message.pk), None)


def _ending_with(pieces: Sequence[Message], before: list[Entry], seen: Entry | None) -> list[Entry]:
    """The last piece at the end of the view, whole or as it was shortened, with all of its end."""
    whole = "".join(piece.content for piece in pieces)
    texts = {piece.pk: piece.content for piece in pieces[:-1]}
    last = pieces[-1]
    own = last.content if seen is None or seen.content is None else seen.content
    if seen is not None and (_told_before(before, texts) + own).endswith(whole[-TAIL_CHARS:]):
        return [*before, seen]
    kept = own + "\n" if seen is not None and seen.content is not None else ""
    return [*before, Entry(message_id=last.pk, content=kept + LEFT_OUT + whole[-TAIL_CHARS:])]


def _told_before(entries: Sequence[Entry], texts: Mapping[int, str]) -> str:
    """What the view tells of the earlier pieces, directly before the last one."""
    told = ""
    for entry in reversed(entries):
        if entry.message_id is None or entry.message_id not in texts:
            break
        told = (texts[entry.message_id] if entry.content is None else entry.content) + told
    return told


def request_to_go_on(context: Context, request: ChatRequest) -> ChatRequest:
    """The request of a context that is `continuing`, marked where the model goes on by itself.

    Without the white space at its end, which some services refuse, and models were not trained on.
    """
    messages = request.messages
    goes_on = context.dialog.llm.prefill == Prefill.CONTINUES and cut_answer(context.branch)
    if not goes_on or not messages or messages[-1].role != "assistant":
        return request
    last = replace(messages[-1], content=messages[-1].content.rstrip())
    return replace(request, messages=(*messages[:-1], last), continues=True)
