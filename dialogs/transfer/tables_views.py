"""What every field of a dialog file's marks, compaction runs and view changes must be: readers for `shape_views.py`."""

from __future__ import annotations

from dialogs.models import MessageMark, ViewChange
from dialogs.transcript import quotes
from dialogs.transcript.model_view import HANDOVER
from dialogs.transcript.writes.marks import AREA_CHARS
from dialogs.transfer.place import flag, list_of, maybe, moment, number, one_of, text, whole
from dialogs.transfer.shape_views import (
    UNDER_WAY,
    LedgerEntry,
    LossEntry,
    ReceiptEntry,
    SeenEntry,
    Status,
    StepEntry,
    TermEntry,
)
from dialogs.transfer.tables import MAX_ENTRIES, Table, counted, entries, long_text, seqs
from health.compaction.config import RecoveryMode
from health.compaction.terms.outcome import Code, Extent
from health.compaction.terms.units import Kind
from health.models import CompactionRun

name = text(120)
priority = maybe(whole(min(MessageMark.Priority.values), max(MessageMark.Priority.values)))

MARK: Table = {
    "message": counted,
    "pinned": flag,
    "priority": priority,
    "area": text(AREA_CHARS),
    "marked_at": moment,
}
SEEN = {
    "message": maybe(counted),
    "content": maybe(long_text),
    "kind": one_of(["", HANDOVER, quotes.KIND, *Kind]),
    "covers": seqs,
}
STEP = {
    "phase": name,
    "estimated_before": whole(),
    "estimated_after": whole(),
    "changed": flag,
    "note": long_text,
    "ms": number,
}
TERM = {"what": long_text, "tokens": whole(), "source": long_text}
RECEIPT = {"message": maybe(counted), "extent": one_of(Extent), "read": whole(), "total": whole()}
LOSS = {"text": long_text, "kind": name, "message": maybe(counted), "kept": flag}
LEDGER = {"text": long_text, "kind": name}
COMPACTION: Table = {
    "number": counted,
    "course": counted,
    "parent": maybe(counted),
    "leaf": counted,
    "turn": whole(),
    "trigger": one_of(CompactionRun.Trigger.values),
    "status": one_of(status for status in Status.values if status not in UNDER_WAY),
    "focus": long_text,
    "up_to_seq": maybe(counted),
    "chain": list_of(name, most=100),
    "limit_tokens": whole(),
    "reserve_tokens": whole(),
    "limit_trace": entries(TermEntry, TERM),
    "steps": entries(StepEntry, STEP),
    "phase": text(40),
    "tokens_now": maybe(whole()),
    "priority": priority,
    "priority_area": text(AREA_CHARS),
    "estimated_before": maybe(whole()),
    "estimated_after": maybe(whole()),
    "messages_before": maybe(whole()),
    "messages_after": maybe(whole()),
    "counter": text(60),
    "grade": text(20),
    "embedder": name,
    "coherence": maybe(number),
    "reward": maybe(number),
    "recovered": one_of(["", *RecoveryMode]),
    "view": entries(SeenEntry, SEEN),
    "removed": seqs,
    "coverage": entries(ReceiptEntry, RECEIPT),
    "losses": entries(LossEntry, LOSS),
    "ledger": entries(LedgerEntry, LEDGER),
    "warnings": list_of(long_text, most=MAX_ENTRIES),
    "code": one_of(["", *Code]),
    "reason": long_text,
    "queued_at": moment,
    "started_at": maybe(moment),
    "finished_at": maybe(moment),
}
VIEW_CHANGE: Table = {
    "course": counted,
    "before": maybe(counted),
    "after": maybe(counted),
    "why": one_of(ViewChange.Why.values),
    "changed_at": moment,
}
