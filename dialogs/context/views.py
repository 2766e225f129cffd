"""The page of a dialog's standing rules, which every course and compaction carries over. A person may change them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from dialogs.common.errors import DialogError
from dialogs.context.border import read_context
from dialogs.context.carry_over import whole_branch
from dialogs.context.material import SYSTEM, units_of
from dialogs.llms.counter import counter_of
from dialogs.models import Dialog, Message
from dialogs.transcript.standing_rules import load, taken_back
from dialogs.transcript.views import go_back, of_dialog
from dialogs.transcript.writes import marks as service
from dialogs.turns.reads.turns import dialog_to_drive
from health.compaction.reading.ledger import Entry, extract
from health.compaction.reading.ledger_page import normal


@never_cache
@of_dialog("GET")
def page(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    return render(request, "dialogs/standing_rules.html", {"dialog": dialog, "rules": standing_rules(dialog)})


@of_dialog("POST")
def change(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    """`rule` is the text that is changed, `text` the new one. A refused text stays in the form."""
    rule, text = request.POST.get("rule", ""), request.POST.get("text", "")
    changes = {
        "add": partial(service.lay_down, text=text),
        "restore": partial(service.lay_down, text=rule),
        "edit": partial(service.reword, old=rule, text=text),
        "remove": partial(service.take_back, text=rule),
    }
    made = changes.get(request.POST.get("change", ""), changes["add"])
    try:
        made(dialog=dialog)
    except DialogError as error:
        messages.error(request, str(error))
        context = {"dialog": dialog, "rules": standing_rules(dialog), "draft": text}
        return render(request, "dialogs/standing_rules.html", context, status=422)
    return go_back(request, fallback=reverse("dialog_rules", args=[dialog.pk]))


@dataclass(frozen=True, kw_only=True)
class RuleInForce:
    """`kind` is its kind in the ledger; empty for a rule that a person typed here, which has no `source`."""

    text: str
    kind: str
    said_at: datetime
    source: Message | None = None


@dataclass(frozen=True, kw_only=True)
class StandingRules:
    """Both newest first."""

    in_force: tuple[RuleInForce, ...]
    taken_back: tuple[str, ...]


def standing_rules(dialog: Dialog) -> StandingRules:
    """Reads all messages of the shown branch: linear in their text."""
    by_hand = load(dialog.standing_rules)
    known = {rule.key for rule in by_hand}
    rules = [RuleInForce(text=rule.text, kind="", said_at=rule.at) for rule in by_hand if rule.holds]
    rules += [rule for rule in _laid_down(dialog) if normal(rule.text) not in known]
    newest_first = sorted(rules, key=lambda rule: rule.said_at, reverse=True)
    return StandingRules(in_force=tuple(newest_first), taken_back=taken_back(by_hand)[::-1])


def _laid_down(dialog: Dialog) -> Iterator[RuleInForce]:
    branch = whole_branch(dialog_to_drive(dialog.pk)) if dialog.current_leaf_id else ()
    said = {str(message.pk): message for message in branch}
    for entry in _entries(dialog, branch):
        source = said.get(entry.source_id)
        if source is not None:
            yield RuleInForce(text=entry.text, kind=entry.kind.value, said_at=source.created_at, source=source)


def _entries(dialog: Dialog, branch: tuple[Message, ...]) -> tuple[Entry, ...]:
    context = read_context(dialog, branch).whole() if branch else None
    units = units_of(context, counter_of(dialog.llm)) if context else ()
    return extract([unit for unit in units if unit.id != SYSTEM]).stated
