"""The table of phases: icon and message of each, word for word; other strategies and ends in the same manner.

The key is a run's `phase`: the strategy that is at work, or how the run ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, kw_only=True)
class Phase:
    """`icon` is a symbol of static/icons.svg.

    Of a strategy `label` is its name where details list it; `choice` says what it does where it is put into the chain.
    """

    icon: str
    message: Promise
    label: Promise | str = ""
    choice: Promise | str = ""
    # `expecting` says what comes out of it, where that is known beforehand.
    expecting: Promise | None = None
    spins: bool = False
    pulses: bool = False


PHASES: Mapping[str, Phase] = {
    "detection": Phase(icon="sync", message=_("Checking context length…"), spins=True),
    "summarize_old": Phase(
        icon="compress",
        label=_("Summarize old"),
        choice=_("Summarise what is old"),
        message=_("Summarizing old context…"),
        expecting=_("Summarizing old context… (est. %(before)s → %(after)s tokens)"),
        pulses=True,
    ),
    "prioritize_recent": Phase(
        icon="star",
        label=_("Prioritize recent"),
        choice=_("Keep what is recent and relevant"),
        message=_("Prioritizing P1 units & recent messages…"),
    ),
    "content_type_chunking": Phase(
        icon="code",
        label=_("Content chunking"),
        choice=_("Shorten by kind: code, text, logs"),
        message=_("Chunking code & plan references…"),
    ),
    "discard_low_rel": Phase(
        icon="clear-all",
        label=_("Discard low relevance"),
        choice=_("Discard what is least relevant"),
        message=_("Removing low-relevance units…"),
    ),
    "hybrid": Phase(
        icon="layers",
        label=_("Hybrid"),
        choice=_("All before it again, in turns"),
        message=_("Applying hybrid compression…"),
        pulses=True,
    ),
    "trim_payloads": Phase(
        icon="compress",
        label=_("Trim payloads"),
        choice=_("Shorten bulky tool results"),
        message=_("Trimming bulky tool results…"),
    ),
    "shortening": Phase(
        icon="cut", label=_("Shorten what must stay"), message=_("Shortening what must stay and does not fit…")
    ),
    "select_passages": Phase(
        icon="star",
        label=_("Select passages"),
        choice=_("Choose passages from all that was said"),
        message=_("Selecting the passages that are needed most…"),
    ),
    "prune_with_agent": Phase(
        icon="compress",
        label=_("Prune with agent"),
        choice=_("Let the pruning agent decide"),
        message=_("Summarizing with the pruning agent…"),
        expecting=_("Summarizing with the pruning agent… (est. %(before)s → %(after)s tokens)"),
        pulses=True,
    ),
    "keep_last_five": Phase(
        icon="clear-all",
        label=_("Keep last five"),
        choice=_("Keep the last five rounds"),
        message=_("Keeping the last five messages…"),
    ),
    "passages_keep_last_five": Phase(
        icon="star",
        label=_("Passages and last five"),
        choice=_("Choose passages, and keep the last five rounds"),
        message=_("Selecting passages beside the last five messages…"),
    ),
    "truncate": Phase(
        icon="cut", label=_("Truncate"), choice=_("Cut off what is oldest"), message=_("Dropping the oldest messages…")
    ),
    "sliding_window": Phase(
        icon="layers",
        label=_("Sliding window"),
        choice=_("Keep a window of messages"),
        message=_("Keeping a window of recent messages…"),
    ),
    "fresh_start": Phase(
        icon="refresh", label=_("Fresh start"), message=_("Starting fresh conversation…"), pulses=True
    ),
    "recovery": Phase(
        icon="refresh", label=_("Recovery"), message=_("Overflow detected – starting fresh conversation"), pulses=True
    ),
    "recovery_by_truncation": Phase(icon="cut", message=_("Overflow detected – dropping the oldest messages")),
    "handover": Phase(icon="sync-complete", label=_("Handover"), message=_("Resumed from summary. Continuing task…")),
    # How a run ends.
    "success": Phase(icon="check", message=_("Context reduced to %(now)s / %(limit)s tokens")),
    "truncated": Phase(icon="cut", message=_("Oldest messages dropped: %(now)s / %(limit)s tokens")),
    "bare": Phase(icon="refresh", message=_("Only what must stay is left: %(now)s / %(limit)s tokens")),
    "draft": Phase(icon="pencil", message=_("Ready for your review: %(now)s / %(limit)s tokens")),
    "skipped": Phase(icon="skip", message=_("Nothing was compacted")),
    "failed": Phase(icon="alert", message=_("Compaction failed. Nothing was changed.")),
    "cancelling": Phase(icon="sync", message=_("Cancelling…"), spins=True),
    "cancelled": Phase(icon="close", message=_("Compaction cancelled. Nothing was changed.")),
    "undone": Phase(icon="restore", message=_("Compaction undone. The model sees the earlier context again.")),
}


def phase(name: str) -> Phase:
    """A strategy that this table does not know is computed without its name."""
    return PHASES.get(name, PHASES["detection"])


def strategy_label(name: str) -> str:
    return str(phase(name).label) or name
