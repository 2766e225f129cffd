"""Every strategy by the name it has in a chain. A new one is a new file and one line here."""

from __future__ import annotations

from health.compaction.strategies.content_type_chunking import content_type_chunking
from health.compaction.strategies.discard_low_rel import discard_low_rel
from health.compaction.strategies.hybrid import hybrid
from health.compaction.strategies.keep_last_five import keep_last_five, passages_keep_last_five
from health.compaction.strategies.prioritize_recent import prioritize_recent
from health.compaction.strategies.prune_with_agent import prune_with_agent
from health.compaction.strategies.select_passages import select_passages
from health.compaction.strategies.sliding_window import sliding_window
from health.compaction.strategies.summarize_old import summarize_old
from health.compaction.strategies.trim_payloads import trim_payloads
from health.compaction.strategies.truncate import truncate
from health.compaction.terms.ports import Strategy

REGISTRY: dict[str, Strategy] = {
    "summarize_old": summarize_old,
    "prioritize_recent": prioritize_recent,
    "discard_low_rel": discard_low_rel,
    "hybrid": hybrid,
    "keep_last_five": keep_last_five,
    "passages_keep_last_five": passages_keep_last_five,
    "prune_with_agent": prune_with_agent,
    "truncate": truncate,
    "select_passages": select_passages,
    "content_type_chunking": content_type_chunking,
    "sliding_window": sliding_window,
    "trim_payloads": trim_payloads,
}
