"""What a person lays down in a dialog beside the messages, which never change: marks on them (pinned, or a priority and
an area); and standing rules: add, reword, take back, put in force again.

Rules in force are part of every request's instructions. Those taken back are named there as no longer in force, and no
compaction or new course carries them on.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.common.text import storable
from dialogs.models import Dialog, Message, MessageMark
from dialogs.models.message import INSERTED
from dialogs.transcript.standing_rules import StandingRule, dump, having, load, without
from dialogs.transcript.writes.dialog_row import lock, out_of_trash, save
from health.compaction.reading.ledger_page import normal
from health.compaction.reading.messages import as_area
from health.configured import context_config
from health.models import CompactionRun

AREA_CHARS = 80


@transaction.atomic
def set_pin(*, dialog: Dialog, message_id: int, pinned: bool) -> None:
    """A pinned message survives every compaction, as one of priority P1 does."""
    row = lock(dialog)
    mark = _mark(row, message_id)
    mark.pinned = pinned
    _keep(row, mark)


@transaction.atomic
def set_priority(*, dialog: Dialog, message_id: int, priority: str, area: str = "") -> None:
    """`priority` is "1", "2", "3", or nothing, which takes the area away too. An area that staff put first makes it 1,
    whatever was chosen."""
    row = lock(dialog)
    mark = _mark(row, message_id)
    if priority and priority not in {str(value) for value in MessageMark.Priority.values}:
        raise DialogError(_("Priorities are P1, P2 and P3."))
    words = " ".join(storable(area).split())
    if len(words) > AREA_CHARS:
        raise DialogError(_("An area has %(chars)s characters at most.") % {"chars": AREA_CHARS})
    is_first = as_area(words) in map(as_area, context_config().priority_areas)
    mark.priority = MessageMark.Priority.P1 if is_first else int(priority) if priority else None
    mark.area = words if mark.priority else ""
    _keep(row, mark)


def _mark(row: Dialog, message_id: int) -> MessageMark:
    message = Message.objects.filter(dialog=row, pk=message_id).first()
    if message is None or message.origin in INSERTED:
        raise DialogError(_("Only messages of yours and of the agent can be marked."))
    return MessageMark.objects.filter(message=message).first() or MessageMark(message=message)


def _keep(row: Dialog, mark: MessageMark) -> None:
    """Save the mark; delete it when it is empty."""
    if mark.pinned or mark.priority:
        mark.save()
        _follow_views(mark)
    elif mark.pk:
        mark.delete()
    save(row)


def _follow_views(mark: MessageMark) -> None:
    """A view knows the marks from before it was made. The clock may have gone back: make this mark later than the
    view."""
    later = CompactionRun.objects.filter(course__messages=mark.message_id, queued_at__gte=mark.marked_at)
    newest = later.aggregate(newest=Max("queued_at"))["newest"]
    if newest:
        MessageMark.objects.filter(pk=mark.pk).update(marked_at=newest + timedelta(microseconds=1))


RULE_CHARS = 2_000
MOST_RULES = 100


@transaction.atomic
def lay_down(*, dialog: Dialog, text: str) -> None:
    """Add a rule; one that was taken back holds again."""
    row, rules = _usable(dialog)
    _keep_rules(row, having(rules, _rule(text, holds=True)))


@transaction.atomic
def reword(*, dialog: Dialog, old: str, text: str) -> None:
    """Replace a rule: one written by hand gets the new text; one from a message is taken back, and the new one
    added."""
    row, rules = _usable(dialog)
    new = _rule(text, holds=True)
    by_hand = any(rule.holds and rule.key == normal(old) for rule in rules)
    rest = without(rules, old) if by_hand else having(rules, _rule(old, holds=False))
    _keep_rules(row, having(rest, new))


@transaction.atomic
def take_back(*, dialog: Dialog, text: str) -> None:
    row, rules = _usable(dialog)
    _keep_rules(row, having(rules, _rule(text, holds=False)))


def _usable(dialog: Dialog) -> tuple[Dialog, tuple[StandingRule, ...]]:
    row = out_of_trash(lock(dialog))
    return row, load(row.standing_rules)


def _rule(text: str, *, holds: bool) -> StandingRule:
    words = storable(text).replace("\r\n", "\n").strip()
    if not words:
        raise DialogError(_("A rule needs a text."))
    if len(words) > RULE_CHARS:
        sizes = {"size": f"{len(words):,}", "most": f"{RULE_CHARS:,}"}
        raise DialogError(_("The text has %(size)s characters, and at most %(most)s characters fit.") % sizes)
    return StandingRule(text=words, holds=holds, at=timezone.now())


def _keep_rules(row: Dialog, rules: tuple[StandingRule, ...]) -> None:
    if len(rules) > MOST_RULES:
        raise DialogError(_("There are %(most)s rules already. Join some first.") % {"most": MOST_RULES})
    row.standing_rules = dump(rules)
    save(row, "standing_rules")
