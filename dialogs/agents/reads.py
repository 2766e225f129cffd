"""Reads of an agent's MCP servers and their secrets; and a dialog's reminders as a request contains them.

If all reminders together exceed their share of the room, the longest are shortened in the request. The stored ones do
not change; the agent reads a whole one with `read_reminder`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, QuerySet, UUIDField
from django.utils import timezone

from dialogs.common.secrets import decrypt
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import active_guard
from dialogs.models import Agent, Dialog, McpServer, Reminder
from dominds.prepared import prepared
from health.compaction.terms.ports import Counter, Kit
from health.compaction.terms.reasons import Reason, Why
from health.compaction.trimming.excerpts import fitting
from health.tokens.corrected import likely_of

# A server that failed is not asked again for so long: each turn waits while its tools are listed.
ASK_AGAIN_AFTER = timedelta(minutes=5)
# The share of the room that all reminders may take. An agent cannot exceed it; a person can, and a change to a smaller
# model may.
SHARE_OF_ROOM = 1 / 4


def servers_of(agent: Agent) -> list[McpServer]:
    return _servers_of(agent.pk)


@prepared(BigIntegerField())
def _servers_of(agent_id: Any) -> QuerySet[McpServer]:
    return McpServer.objects.filter(agents=agent_id, enabled=True).order_by("name")


def servers_to_ask(agent: Agent) -> list[McpServer]:
    """The MCP servers that were never asked for their tools, or failed to answer some time ago."""
    long_ago = timezone.now() - ASK_AGAIN_AFTER
    return [
        one for one in servers_of(agent) if one.tools_read_at is None or (one.problem and one.tools_read_at < long_ago)
    ]


def secrets_of(server: McpServer) -> dict[str, str]:
    """Environment variables or headers by name, readable. Raises KeyUnreadable."""
    if not server.secrets_encrypted:
        return {}
    stored: dict[str, str] = json.loads(decrypt(server.secrets_encrypted))
    return stored


class ReminderInRequest(NamedTuple):
    """A reminder, and the text of it that is sent; None: all of it."""

    number: int
    content: str
    left: str | None = None

    @property
    def text(self) -> str:
        return self.content if self.left is None else self.left

    @property
    def is_shortened(self) -> bool:
        return self.left is not None


def reminders_of(dialog: Dialog) -> tuple[ReminderInRequest, ...]:
    """The dialog's reminders, each with its whole text."""
    return tuple(ReminderInRequest(*one) for one in _reminders_of(dialog.pk))


@prepared(UUIDField())
def _reminders_of(dialog_id: Any) -> QuerySet[Reminder, Any]:
    return Reminder.objects.filter(dialog=dialog_id, removed_at=None).values_list("number", "content")


def share_passed(dialog: Dialog, reminders: Sequence[ReminderInRequest]) -> int | None:
    """The most tokens of the reminders, if they exceed it and must be shortened. None if they fit, if the room is
    unknown, and where nothing is compacted by itself."""
    guard = active_guard(dialog) if reminders else None
    texts = [one.content for one in reminders]
    most = int(SHARE_OF_ROOM * guard.room) if guard else 0
    # A token is at least one byte.
    if most <= 0 or sum(len(text.encode()) for text in texts) <= most:
        return None
    return most if sum(_counter(dialog).count(texts)) > most else None


def within_share(dialog: Dialog, reminders: Sequence[ReminderInRequest]) -> tuple[ReminderInRequest, ...]:
    """The reminders as the beginning of a request states them."""
    most = share_passed(dialog, reminders)
    if most is None:
        return tuple(reminders)
    left = fitting([one.content for one in reminders], most_tokens=most, kit=Kit(counter=_counter(dialog)))
    pairs = zip(reminders, left, strict=True)
    return tuple(one if text == one.content else one._replace(left=text) for one, text in pairs)


def shortening_of(dialog: Dialog) -> Reason | None:
    """The step by which reminders give way before a request's beginning is written; None where they fit."""
    found = within_share(dialog, reminders_of(dialog))
    short = [one for one in found if one.is_shortened]
    if not short:
        return None
    count = _counter(dialog).count
    sizes = {"before": sum(count([one.content for one in short])), "after": sum(count([one.text for one in short]))}
    return Reason(Why.REMINDERS_SHORTENED, {"name": ", ".join(str(one.number) for one in short), **sizes})


def _counter(dialog: Dialog) -> Counter:
    return likely_of(counter_of(dialog.llm))
