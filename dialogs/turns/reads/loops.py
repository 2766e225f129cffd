"""What an agent did since a person last spoke, for whoever looks for circles in it; what is shown of a circle; and
whether a fresh start is offered, because the context was too much again and again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import DateTimeField, QuerySet, UUIDField
from django.db.models.functions import Left, Length
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.llms.guard import may_be_guarded
from dialogs.models import Dialog, Message, ToolCall
from dialogs.models.dialog import PausedBy
from dialogs.models.message import BY_PEOPLE, MessageOrigin, Role
from dialogs.turns.reads.call_rows import RESULT
from dominds.prepared import prepared
from health.compaction.config import AtMilestone
from health.loops import MOST_STEPS, Call, Kind, Step
from health.models import CompactionRun, ContextEvent

Status = CompactionRun.Status
CAME_TO_NOTHING = (Status.SKIPPED, Status.FAILED, Status.CANCELLED)
Code = ContextEvent.Code
# So much of a result, and how long a longer one is, tell two results apart.
COMPARED_CHARS = 5_000
# Enough for the steps with their results; a round of very many calls shortens the stretch, and that is all.
MOST_MESSAGES = 10 * MOST_STEPS
OVER = (ToolCall.Status.DONE, ToolCall.Status.FAILED)


def is_fresh_start_offered(dialog: Dialog) -> bool:
    """Whether a fresh start is offered: for an hour, until it is made or declined. Where nobody is guarded nothing is
    asked."""
    if not may_be_guarded(dialog):
        return False
    event = _offers.first(dialog.pk, timezone.now() - timedelta(hours=1))
    if event is None or event.facts.get("declined"):
        return False
    return not was_reset_since(dialog, event.happened_at)


@prepared(UUIDField(), DateTimeField())
def _offers(dialog_id: Any, since: Any) -> QuerySet[ContextEvent]:
    return ContextEvent.objects.filter(
        dialog=dialog_id,
        code=ContextEvent.Code.OVER_HIT,
        facts__escalated=str(AtMilestone.OFFER),
        happened_at__gt=since,
    )[:1]


def was_reset_since(dialog: Dialog, moment: datetime) -> bool:
    """Whether a person's reset has begun since this moment, or is about to begin. A reset that came to nothing may be
    wished again."""
    resets = CompactionRun.objects.filter(dialog=dialog, trigger=CompactionRun.Trigger.RESET, queued_at__gt=moment)
    return resets.exclude(status__in=CAME_TO_NOTHING).exists()


@dataclass(frozen=True, kw_only=True)
class Stretch:
    steps: tuple[Step, ...]
    over_hits: int


@dataclass(frozen=True, kw_only=True)
class LoopNotice:
    seen: tuple[str, ...]


def stretch_of(dialog: Dialog) -> Stretch:
    """The newest answers of the branch that is shown: since a person spoke, the course began, a fresh start, or what
    was last found. Costs what the stretch is long."""
    answers = _answers(dialog)
    if not answers:
        return Stretch(steps=(), over_hits=0)
    calls = _calls([answer.pk for answer in answers])
    over_hits = ContextEvent.objects.filter(
        dialog=dialog, code=Code.OVER_HIT, happened_at__gte=answers[0].created_at
    ).count()
    return Stretch(
        steps=tuple(Step(text=answer.content, calls=tuple(calls[answer.pk])) for answer in answers),
        over_hits=over_hits,
    )


def _answers(dialog: Dialog) -> list[Message]:
    leaf = dialog.current_leaf
    if leaf is None:
        return []
    newer = Message.objects.filter(course_id=leaf.course_id, seq__gt=_looked_at(dialog), seq__lte=leaf.seq)
    shown = newer.order_by("-seq").only("parent_id", "role", "origin", "created_at")[:MOST_MESSAGES]
    found = {message.pk: message for message in shown}
    branch: list[Message] = []
    at: int | None = leaf.pk
    while at in found and not (found[at].role == Role.USER and found[at].origin in BY_PEOPLE):
        branch.append(found[at])
        at = found[at].parent_id
    ids = [message.pk for message in branch if message.role == Role.ASSISTANT][:MOST_STEPS]
    return list(Message.objects.filter(pk__in=ids).order_by("seq"))


def _looked_at(dialog: Dialog) -> int:
    """The `seq` up to which messages count no more for a circle."""
    event = _newest(dialog)
    reset = CompactionRun.objects.filter(
        dialog=dialog, trigger=CompactionRun.Trigger.RESET, status=CompactionRun.Status.APPLIED
    ).order_by("-id")
    return max(event.facts["through"] if event else 0, reset.values_list("through_seq", flat=True).first() or 0)


def _calls(message_ids: list[int]) -> defaultdict[int, list[Call]]:
    """The calls that have ended, by their message. Arguments and results are only compared, never shown."""
    found: defaultdict[int, list[Call]] = defaultdict(list)
    rows = ToolCall.objects.filter(message_id__in=message_ids, status__in=OVER)
    for row in rows.annotate(head=Left(RESULT, COMPARED_CHARS), chars=Length(RESULT)).defer("result"):
        call = Call(
            name=row.name,
            arguments=_plain(row.arguments),
            outcome=f"{max(row.chars, COMPARED_CHARS)}:{row.head}",
            failed=row.status == ToolCall.Status.FAILED,
        )
        found[row.message_id].append(call)
    return found


def _plain(arguments: str) -> str:
    """JSON in one form, whatever the order of its keys; what is none as it is."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _newest(dialog: Dialog) -> ContextEvent | None:
    return _found.first(dialog.pk)


@prepared(UUIDField())
def _found(dialog_id: Any) -> QuerySet[ContextEvent]:
    return ContextEvent.objects.filter(dialog=dialog_id, code=Code.LOOP_DETECTED).order_by("-id")[:1]


def loop_notice(dialog: Dialog) -> LoopNotice | None:
    """The circle that was seen, until the person dismisses it, goes on in another way, or begins afresh."""
    event = None if dialog.is_client_driven or dialog.current_leaf_id is None else _newest(dialog)
    if event is None or event.facts.get("dismissed") or _has_gone_on(dialog, event):
        return None
    return LoopNotice(seen=circle_in_words(event.facts))


def _has_gone_on(dialog: Dialog, event: ContextEvent) -> bool:
    if event.facts["paused"]:
        return dialog.paused_by != PausedBy.LOOP or was_reset_since(dialog, event.happened_at)
    typed = Message.objects.filter(dialog=dialog, origin=MessageOrigin.TYPED, seq__gt=event.facts["through"])
    is_another_course = dialog.current_leaf is not None and dialog.current_leaf.course_id != event.facts["course"]
    return is_another_course or typed.exists() or was_reset_since(dialog, event.happened_at)


def circle_in_words(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence for each sign that was seen, and one where the context was too much meanwhile."""
    said = tuple(_said(seen) for seen in facts.get("seen", ()))
    return (*said, _("The context was over its limit meanwhile.")) if facts.get("over_hits") else said


def _said(seen: Mapping[str, Any]) -> str:
    count, numbers = seen["count"], seen["numbers"]
    match seen["kind"]:
        case Kind.CALLS:
            words = _("%(tool)s was called %(count)s times with the same arguments and the same result.")
            return words % {"tool": seen["tool"], "count": count}
        case Kind.ERRORS:
            return _("%(tool)s failed %(count)s times with the same error.") % {"tool": seen["tool"], "count": count}
        case Kind.ANSWERS:
            words = _("The last %(count)s answers are %(percent)s %% alike.")
            return words % {"count": count, "percent": numbers[0]}
    words = _("The last %(count)s answers became shorter and shorter: from %(first)s characters to %(last)s.")
    return words % {"count": count, "first": f"{numbers[0]:,}", "last": f"{numbers[1]:,}"}
