"""Filters that show stored codes and English keys in the reader's language: events, strategies, losses, terms of a
limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dialogs.agents.reads import shortening_of
from dialogs.common.errors import in_words
from dialogs.compaction.reads.compaction_rows import strategy_label
from dialogs.llms.guard import is_off
from dialogs.models import Dialog
from dialogs.templatetags.dialog_tags import tokens
from dialogs.transcript.reads.courses import handover_of
from health.compaction.reading.ledger import Presence
from health.critic.replay import COHERENCE_DROP
from health.models import GRADES, ContextEvent

register = template.Library()

LOSSES = {
    "identifier": gettext_lazy("identifier"),
    "number": gettext_lazy("number"),
    "path": gettext_lazy("path"),
    "url": gettext_lazy("address"),
    "command": gettext_lazy("command"),
    "error": gettext_lazy("error message"),
    "binding": gettext_lazy("binding sentence"),
}
# By the kind of a ledger entry; empty for a rule that a person wrote by hand.
RULES = {
    "": gettext_lazy("written here"),
    "rule": gettext_lazy("rule"),
    "constraint": gettext_lazy("constraint"),
    "deadline": gettext_lazy("deadline"),
    "decision": gettext_lazy("decision"),
    "goal": gettext_lazy("goal"),
    "preference": gettext_lazy("preference"),
    "fact": gettext_lazy("fact"),
}
TERMS = {
    "window": gettext_lazy("Window"),
    "bound": gettext_lazy("Learned bound"),
    "room": gettext_lazy("Room for a prompt"),
    "agent": gettext_lazy("Limit of the agent"),
    "LLM": gettext_lazy("Limit of the LLM"),
    "default": gettext_lazy("Limit for everybody"),
    "P1 agent": gettext_lazy("P1 agent"),
    "floor": gettext_lazy("Floor"),
}
CATEGORIES = {
    "instructions": gettext_lazy("Instructions"),
    "tools": gettext_lazy("Tools"),
    "taskdoc": gettext_lazy("Taskdoc"),
    "reminders": gettext_lazy("Reminders"),
    "summaries": gettext_lazy("Summaries"),
    "messages": gettext_lazy("Messages"),
    "tool_results": gettext_lazy("Results of tools"),
    "margin": gettext_lazy("Margin until reports calibrate the estimate"),
    "reserve": gettext_lazy("Kept for the answer"),
    "free": gettext_lazy("Free"),
}
PHASES_OF_TASK = {
    "planning": gettext_lazy("planning"),
    "executing": gettext_lazy("executing"),
    "completed": gettext_lazy("completed"),
}
# The numbers of a replay.
EFFECTS = {
    "over_hits": gettext_lazy("Requests above the limit"),
    "failures": gettext_lazy("Requests that stay above it"),
    "compactions": gettext_lazy("Compactions"),
    "tokens_removed": gettext_lazy("Tokens removed"),
    "tokens_sent": gettext_lazy("Tokens sent"),
}
# The codes of patterns: those of events, and incoherent results, which are no event.
EVENTS = {**dict(ContextEvent.Code.choices), COHERENCE_DROP: gettext_lazy("the result was incoherent")}
# Filter name, and the table in which it looks its value up.
WORDS: dict[str, Mapping[str, Any]] = {
    "loss_kind": LOSSES,
    "rule_kind": RULES,
    "phase_of_task": PHASES_OF_TASK,
    "term_words": TERMS,
    "category_words": CATEGORIES,
    "effect_words": EFFECTS,
    "event_words": EVENTS,
    "grade_words": GRADES,
}
PRESENCES = {
    Presence.KEPT: gettext_lazy("word for word"),
    Presence.SHORTENED: gettext_lazy("shortened"),
    Presence.GONE: gettext_lazy("no longer seen by it"),
}

SELECTED = mark_safe(" selected")


def _word(words: Mapping[str, Any], key: str) -> str:
    """The word for a key; a key that is not in the table stays as it is."""
    return str(words.get(key, key))


for _name, _words in WORDS.items():
    register.filter(_name, partial(_word, _words))
register.filter("strategy_label", strategy_label)
register.filter("in_words", in_words)
register.filter("is_off", is_off)
register.filter("handover", handover_of)


@register.filter
def shortening_of_reminders(dialog: Dialog) -> str:
    """A sentence about how the reminders are shortened in the request; empty where they fit."""
    return in_words(shortening_of(dialog))


@register.filter
def presence_words(presence: Presence) -> str:
    """Does the model see a rule or fact: word for word, shortened, or no longer?"""
    return str(PRESENCES[presence])


@register.filter
def coverage_words(receipt: Mapping[str, Any] | None) -> str:
    """How much of a removed message was read for the text that replaced it."""
    if not receipt:
        return ""
    if receipt["extent"] == "in full":
        return _("read in full before it left the context")
    if receipt["extent"] == "in part":
        numbers = {"read": tokens(receipt["read"]), "total": tokens(receipt["total"])}
        return _("read in part: %(read)s of %(total)s characters") % numbers
    return _("left out; only rules and values that you stated in it are carried on")


@register.filter
def percent(share: float) -> str:
    """0.934 -> "93". Never 100 unless all of it."""
    return str(int(share * 100))


@register.simple_tag
def options(choices: Iterable[tuple[int, str]], chosen: int) -> SafeString:
    """The options of a select. Not a template loop: with hundreds of agents that took a third of the page's time."""
    rows = ((key, SELECTED if key == chosen else "", label) for key, label in choices)
    return format_html_join("", '<option value="{}"{}>{}</option>', rows)
