"""Every strategy by the name it has in a chain. A new one is a new file and one line here."""

from __future__ import annotations

from health.compaction.ports import Strategy

REGISTRY: dict[str, Strategy] = {}
