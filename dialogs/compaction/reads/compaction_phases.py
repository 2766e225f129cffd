"""The table of phases: icon and message of each, word for word.

The key is a run's `phase`: the strategy that is at work, whose words stand in its own file, or how the run ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from health.compaction.strategies import SHOWN
from health.compaction.terms.registry import Shown


@dataclass(frozen=True, kw_only=True)
class Phase:
    """`icon` is a symbol of static/icons.svg; `label`, `choice` and `expecting` are those of a strategy (`Shown`)."""

    icon: str
    message: Promise
    label: Promise | str = ""
    choice: Promise | str = ""
    expecting: Promise | None = None
    spins: bool = False
    pulses: bool = False


def _of_strategy(shown: Shown) -> Phase:
    return Phase(
        icon=shown.icon,
        label=_(shown.label),
        choice=_(shown.choice),
        message=_(shown.message),
        expecting=_(shown.expecting) if shown.expecting else None,
        pulses=shown.pulses,
    )


PHASES: Mapping[str, Phase] = {
    **{name: _of_strategy(shown) for name, shown in SHOWN.items()},
    "detection": Phase(icon="sync", message=_("Checking context length…"), spins=True),
    "shortening": Phase(
        icon="cut", label=_("Shorten what must stay"), message=_("Shortening what must stay and does not fit…")
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
