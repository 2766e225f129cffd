"""A person's standing rules of a dialog: add, reword, take back, put in force again.

Rules in force are part of every request's instructions. Those taken back are named there as no longer in force, and no
compaction or new course carries them on. Messages never change.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.common.text import storable
from dialogs.models import Dialog
from dialogs.transcript.standing_rules import StandingRule, dump, having, load, without
from dialogs.transcript.writes.dialog_row import lock, out_of_trash, save
from health.compaction.reading.ledger_page import normal

RULE_CHARS = 2_000
MOST_RULES = 100


@transaction.atomic
def lay_down(*, dialog: Dialog, text: str) -> None:
    """Add a rule; one that was taken back holds again."""
    row, rules = _usable(dialog)
    _keep(row, having(rules, _rule(text, holds=True)))


@transaction.atomic
def reword(*, dialog: Dialog, old: str, text: str) -> None:
    """Replace a rule: one written by hand gets the new text; one from a message is taken back, and the new one
    added."""
    row, rules = _usable(dialog)
    new = _rule(text, holds=True)
    by_hand = any(rule.holds and rule.key == normal(old) for rule in rules)
    rest = without(rules, old) if by_hand else having(rules, _rule(old, holds=False))
    _keep(row, having(rest, new))


@transaction.atomic
def take_back(*, dialog: Dialog, text: str) -> None:
    row, rules = _usable(dialog)
    _keep(row, having(rules, _rule(text, holds=False)))


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


def _keep(row: Dialog, rules: tuple[StandingRule, ...]) -> None:
    if len(rules) > MOST_RULES:
        raise DialogError(_("There are %(most)s rules already. Join some first.") % {"most": MOST_RULES})
    row.standing_rules = dump(rules)
    save(row, "standing_rules")
