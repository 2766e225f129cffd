"""A dialog's present course as the sizes of what was said: what a replay needs, and no word of it."""

from __future__ import annotations

from dataclasses import replace

from dialogs.context.border import read_context
from dialogs.context.estimate import estimate, media_tokens, sent_text
from dialogs.context.present import offered_tools
from dialogs.llms.counter import counter_of
from dialogs.models import Dialog
from dialogs.models.message import Role
from dialogs.transcript.reads.path import course_branch
from health.critic.replay import Growth


def growth_of(dialog: Dialog, *, reserve: int) -> Growth:
    """As it was said: what was compacted meanwhile was compacted under other settings."""
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
