"""An outcome of compaction as text for a person, as plain values for JSON, and as a picture: an SVG of its own,
without a library.

In the picture stand above the estimated tokens before and after each step, with the limit as a line; below, the history
from left to right: what was kept, shortened, summarised and dropped. Heights and words say what the colours say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from html import escape
from itertools import groupby
from typing import Any

from health.compaction.terms.fates import Fate
from health.compaction.terms.outcome import CompactionOutcome, Extent, Loss, Receipt, Status, Step

# More than this scrolls away; --json holds all of it.
_MOST_LINES = 20
_WIDEST = 100
WIDTH, MARGIN, LABELS = 800, 20, 190
ROW, BAR, STRIP = 30, 9, 60
# Colours that differ in lightness too, and the share of the strip's height.
LOOKS: Mapping[Fate, tuple[str, float]] = {
    Fate.KEPT: ("#0072b2", 1.0),
    Fate.SHORTENED: ("#56b4e9", 0.7),
    Fate.SUMMARISED: ("#e69f00", 0.45),
    Fate.DROPPED: ("#999999", 0.15),
}


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
    """How many units were kept, shortened, summarised and dropped, such as "3 kept, 1 shortened, 0 summarised, 2
    dropped"."""
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


def svg(outcome: CompactionOutcome, found: Mapping[str, Fate], *, limit: int) -> str:
    """The whole picture as the text of an SVG file."""
    strip_top = MARGIN * 3 + ROW * max(1, len(outcome.steps))
    height = strip_top + STRIP + MARGIN * 3
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            ' aria-labelledby="title desc" font-family="sans-serif" font-size="12">',
            '<title id="title">Compaction of a conversation</title>',
            f'<desc id="desc">{escape(_told(outcome, found, limit))}</desc>',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            *_steps(outcome, limit),
            *_history(found, strip_top),
            "</svg>\n",
        ]
    )


def _told(outcome: CompactionOutcome, found: Mapping[str, Fate], limit: int) -> str:
    return (
        f"{outcome.estimated_tokens_before:,} estimated tokens became {outcome.estimated_tokens_after:,}; "
        f"the limit is {limit:,}. Messages: {counted(found)}. "
        + " ".join(f"{step.phase}: {step.estimated_before:,} to {step.estimated_after:,}." for step in outcome.steps)
    )


def _steps(outcome: CompactionOutcome, limit: int) -> Iterator[str]:
    most = max([limit, outcome.estimated_tokens_before, *(step.estimated_before for step in outcome.steps)])
    scale = (WIDTH - LABELS - MARGIN) / most
    for number, step in enumerate(outcome.steps):
        yield from _step(step, MARGIN * 2 + number * ROW, scale)
    at = LABELS + limit * scale
    bottom = MARGIN * 2 + ROW * max(1, len(outcome.steps))
    yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{MARGIN + 6}" y2="{bottom}" stroke="#d55e00" stroke-dasharray="4 3"/>'
    yield f'<text x="{at:.1f}" y="{MARGIN}" text-anchor="end" fill="#a04000">limit {limit:,}</text>'


def _step(step: Step, top: int, scale: float) -> Iterator[str]:
    before, after = step.estimated_before * scale, step.estimated_after * scale
    yield f'<text x="{LABELS - 10}" y="{top + 13}" text-anchor="end">{escape(step.phase)}</text>'
    yield f'<rect x="{LABELS}" y="{top}" width="{before:.1f}" height="{BAR}" fill="#cccccc"/>'
    yield f'<rect x="{LABELS}" y="{top + BAR + 1}" width="{after:.1f}" height="{BAR}" fill="#0072b2"/>'
    words = f"{step.estimated_before:,} → {step.estimated_after:,}"
    yield f'<text x="{LABELS + 4}" y="{top + BAR - 1}" font-size="9">{words}</text>'


def _history(found: Mapping[str, Fate], top: int) -> Iterator[str]:
    """Neighbours of one fate are one rectangle, so that fifty thousand messages make no file of megabytes."""
    wide = (WIDTH - 2 * MARGIN) / max(1, len(found))
    at = 0
    for fate, group in groupby(found.values()):
        number = sum(1 for _ in group)
        colour, share = LOOKS[fate]
        x, high = MARGIN + at * wide, STRIP * share
        yield (
            f'<rect x="{x:.2f}" y="{top + STRIP - high:.1f}" width="{number * wide:.2f}" height="{high:.1f}"'
            f' fill="{colour}"><title>messages {at + 1} to {at + number}: {fate}</title></rect>'
        )
        at += number
    yield from _legend(top + STRIP + MARGIN)


def _legend(top: int) -> Iterator[str]:
    for number, (fate, (colour, _)) in enumerate(LOOKS.items()):
        x = MARGIN + number * 120
        yield f'<rect x="{x}" y="{top}" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 18}" y="{top + 11}">{fate}</text>'
