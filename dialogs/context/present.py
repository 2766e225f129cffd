"""The request that a dialog would make now, and how much that is, estimated; and its present course as the sizes of
what was said, which a replay needs, with no word of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dialogs.agents.tools.base import wire
from dialogs.agents.tools.registry import tools_for
from dialogs.context.border import Context, Piece, read_context, read_seen
from dialogs.context.estimate import Estimate, estimate, media_tokens, said_bytes, sent_text
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import Guard
from dialogs.models import Dialog, Message
from dialogs.models.message import Role
from dialogs.transcript.model_view import Entry
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.reads.tool_calls import calls_by_message
from health.critic.replay import Growth

Branch = tuple[Message, ...]


def present_context(dialog: Dialog, guard: Guard | None = None, branch: Branch | None = None) -> Context:
    """The context with all of the course, whatever of it the model sees. `branch`: the branch that is shown, where it
    has been read."""
    return read_context(dialog, course_branch(dialog.current_leaf) if branch is None else branch, guard)


def next_context(dialog: Dialog, guard: Guard | None = None, branch: Branch | None = None) -> Context:
    """What the next request is made of: where a view holds, no more of the course than that."""
    return read_seen(dialog, guard) or present_context(dialog, guard, branch)


def as_stored(context: Context, dialog: Dialog, branch: Sequence[Message]) -> Context:
    """A client's context once its newest messages are stored: they and their calls have ids then.

    Only for a context that sees all of its course as it was said, whose pieces are known.
    """
    ids = [message.id for message in branch if message.role == Role.ASSISTANT]
    calls = calls_by_message(ids) if context.calls else {}
    found = replace(context, dialog=dialog, branch=tuple(branch), calls=calls, client=dialog.client)
    now = {before.id: message for before, message in zip(context.branch, branch, strict=True)}
    pieces = (_of(piece, now[piece.message.id]) for piece in context.pieces if piece.message)
    return with_known(found, pieces=tuple(pieces), said=context.said, said_bytes=said_bytes(context))


def _of(piece: Piece, message: Message) -> Piece:
    return piece if piece.message is message else Piece(Entry(message_id=message.id), message)


def going_on(before: Context, now: Context) -> Context:
    """`now`, with what was worked out for `before`, whose branch is the beginning of its own: of a client's
    conversation of which all goes along as it stands."""
    added = now.branch[len(before.branch) :]
    rest = with_known(replace(now), pieces=tuple(Piece(Entry(message_id=one.id), one) for one in added))
    return with_known(
        now,
        pieces=(*before.pieces, *rest.pieces),
        said=(*before.said, *rest.said),
        said_bytes=said_bytes(before) + said_bytes(rest),
    )


def with_known(context: Context, **worked_out: Any) -> Context:
    """The context, of which these properties need not be worked out again."""
    context.__dict__.update(worked_out)
    return context


def offered_tools(dialog: Dialog, *, compacted: bool | None = None) -> list[dict[str, Any]]:
    """A client's own tools run in the client; ours come after them. `compacted`: as they will be after a compaction,
    which brings a tool of its own."""
    theirs = list(dialog.client.tools) if dialog.is_client_driven else []
    return theirs + [wire(tool) for tool in tools_for(dialog, compacted=compacted)]


def present_estimate(dialog: Dialog) -> Estimate:
    return estimate(next_context(dialog), offered_tools(dialog), counter_of(dialog.llm))


def present_tokens(dialog: Dialog) -> int:
    return present_estimate(dialog).tokens


def growth_of(dialog: Dialog, *, reserve: int) -> Growth:
    """The sizes of the course as it was said: what was compacted meanwhile was compacted under other settings."""
    context = read_context(dialog, course_branch(dialog.current_leaf)).whole()
    counter = counter_of(dialog.llm)
    without = estimate(replace(context, view=()), offered_tools(dialog), counter)
    pieces = context.pieces
    sizes = counter.count([sent_text(piece, context) for piece in pieces])
    return Growth(
        base=without.tokens + reserve,
        sizes=tuple(
            size + counter.per_message + media_tokens(piece, context, counter)
            for piece, size in zip(pieces, sizes, strict=True)
        ),
        asks=tuple(piece.role is not Role.ASSISTANT for piece in pieces),
        reserve=reserve,
    )
