"""How much of the limit is taken by messages that no compaction may touch. Estimated."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from dialogs.compacting.estimate import counter_of
from dialogs.compacting.guard import guard_of
from dialogs.models import Dialog, Message, MessageMark

# Above this share of the limit a person is warned: what is protected leaves no room to compact.
MOST_PINNED_SHARE = 0.25
PROTECTED = Q(mark__pinned=True) | Q(mark__priority=MessageMark.Priority.P1)


def pinned_share(dialog: Dialog, branch: Collection[int]) -> float | None:
    """The share of the limit, else of the window, that protected messages take; None where neither is known."""
    guard = guard_of(dialog)
    room = guard.room if guard else dialog.llm.context_length or dialog.llm.input_length
    if not room:
        return None
    texts = Message.objects.filter(PROTECTED, pk__in=branch).values_list("content", flat=True)
    return sum(counter_of(dialog.llm).count(list(texts))) / room
