"""An outcome of compaction as text for a person, and as plain values for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from health.compaction.terms.fates import Fate
from health.compaction.terms.outcome import CompactionOutcome, Extent, Loss, Receipt, Status, Step

# More than this scrolls away; --json holds all of it.
_MOST_LINES = 20
_WIDEST = 100


def step_line(step: Step) -> str:
    """One step, as it is reported while it happens."""
    after = f" → {step.estimated_after:,}" if step.changed else ", as before"
    return f"{step.phase:<22} {step.estimated_before:>9,}{after:<13} {step.ms:>7,.0f} ms  {step.note}".rstrip()


def lines(outcome: CompactionOutcome, found: Mapping[str, Fate], *, limit: int) -> Iterator[str]:
    """What was kept, summarised, dropped and lost."""
    name = f"{outcome.counter}, {outcome.grade}" if outcome.counter else "not counted"
    yield (
        f"{outcome.status.value.capitalize()}: {outcome.estimated_tokens_before:,} → "
        f"{outcome.estimated_tokens_after:,} estimated tokens ({name}), limit {limit:,}."
    )
    if outcome.reason:
        yield outcome.reason
    yield from (f"Warning: {warning}" for warning in outcome.warnings)
    yield f"Messages: {counted(found)}."
    if outcome.status is Status.APPLIED:
        if outcome.coherence is not None:
            yield f"Coherence: {outcome.coherence:.2f} ({outcome.embedder})."
        yield from _coverage(outcome.coverage)
        stated = [_entry(entry) for entry in outcome.ledger]
        yield from _listed("Stated and in play, kept word for word while there is room", stated)
        yield from _losses(outcome.losses)


def counted(found: Mapping[str, Fate]) -> str:
    """Such as "3 kept, 1 shortened, 0 summarised, 2 dropped"."""
    numbers = Counter(found.values())
    return ", ".join(f"{numbers[fate]:,} {fate}" for fate in Fate)


def as_json(outcome: CompactionOutcome, found: Mapping[str, Fate], *, limit: int) -> dict[str, Any]:
    """Everything a script may want, in JSON's own types."""
    return {
        "status": outcome.status,
        "reason": outcome.reason,
        "why": outcome.why.as_json() if outcome.why else {},
        "code": outcome.code,
        "limit_tokens": limit,
        "estimated_tokens_before": outcome.estimated_tokens_before,
        "estimated_tokens_after": outcome.estimated_tokens_after,
        "counter": outcome.counter,
        "grade": outcome.grade,
        "embedder": outcome.embedder,
        "coherence": outcome.coherence,
        "reward": outcome.reward,
        "recovered": outcome.recovered,
        "warnings": [str(warning) for warning in outcome.warnings],
        "steps": [step.as_json() for step in outcome.steps],
        "fates": dict(found),
        "coverage": [receipt._asdict() for receipt in outcome.coverage],
        "losses": [asdict(loss) for loss in outcome.losses],
        "ledger": [asdict(entry) if is_dataclass(entry) else str(entry) for entry in outcome.ledger],  # type: ignore[arg-type]
        "messages": list(outcome.messages),
    }


def _coverage(receipts: Iterable[Receipt]) -> Iterator[str]:
    numbers = Counter(receipt.extent for receipt in receipts)
    if numbers:
        yield f"Removed text was read: {', '.join(f'{numbers[extent]:,} {extent}' for extent in Extent)}."


def _losses(losses: Iterable[Loss]) -> Iterator[str]:
    losses = tuple(losses)
    gone = [loss for loss in losses if not loss.kept]
    yield f"Of {len(losses):,} facts in removed text {len(losses) - len(gone):,} still stand."
    yield from _listed("Only in the original now", [f"{loss.kind}: {loss.text} ({loss.source_id})" for loss in gone])


def _listed(title: str, items: list[str]) -> Iterator[str]:
    if not items:
        return
    yield f"{title} ({len(items):,}):"
    yield from (f"  {_short(item)}" for item in items[:_MOST_LINES])
    if len(items) > _MOST_LINES:
        yield f"  … and {len(items) - _MOST_LINES:,} more: see --json."


def _entry(entry: Any) -> str:
    return f"{entry.kind}: {entry.text}" if hasattr(entry, "text") else str(entry)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
