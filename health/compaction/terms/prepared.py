"""What a pruning agent decided before its decision was needed, and whether that still holds.

A model reads a long history for seconds or minutes. Asked while there is still room, nobody waits for it. Its decision
is about messages that have not changed since: of anything else nothing is taken over. All that follows from a decision,
the laws, the ledger and the newest values, is made anew when the compaction comes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from health.compaction.terms.units import Unit


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """`shown`: a digest of each message that the agent was shown, by its id. `answers`: its JSON texts, in order."""

    shown: Mapping[str, str]
    answers: tuple[str, ...]

    def holds_for(self, offered: Sequence[Unit]) -> bool:
        """Is every message that it was shown still there to be decided about, and unchanged?"""
        now = digests(offered)
        return bool(self.answers) and all(now.get(one) == digest for one, digest in self.shown.items())


def digests(units: Sequence[Unit]) -> dict[str, str]:
    """A digest of all that a decision about each unit can turn on, by its id: its words, its calls, its priority."""
    return {unit.id: _digest(unit) for unit in units}


def _digest(unit: Unit) -> str:
    calls = [(call.name, call.arguments) for call in unit.calls]
    told = repr((unit.role, unit.kind, unit.priority, unit.content, calls))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
