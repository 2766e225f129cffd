"""Every strategy by the name that it has in a chain. A new one is a new file and one line here: it enters itself."""

from __future__ import annotations

from health.compaction.strategies import (
    content_type_chunking,
    discard_low_rel,
    hybrid,
    keep_last_five,
    prioritize_recent,
    prune_with_agent,
    select_passages,
    sliding_window,
    summarize_old,
    trim_payloads,
    truncate,
)
from health.compaction.terms.registry import REGISTRY, TEXTS

__all__ = ["REGISTRY", "TEXTS"]
