"""A compaction as a picture: an SVG of its own, without a library.

Above, the estimated tokens before and after each step, with the limit as a line. Below, the history from left to
right: what was kept, shortened, summarised and dropped. Heights and words say what the colours say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby

from health.compaction.terms.fates import Fate
from health.compaction.terms.outcome import CompactionOutcome, Step
from health.reports import counted

WIDTH, MARGIN, LABELS = 800, 20, 190
ROW, BAR, STRIP = 30, 9, 60
# Colours that differ in lightness too, and the share of the strip's height.
LOOKS: Mapping[Fate, tuple[str, float]] = {
    Fate.KEPT: ("#0072b2", 1.0),
    Fate.SHORTENED: ("#56b4e9", 0.7),
    Fate.SUMMARISED: ("#e69f00", 0.45),
    Fate.DROPPED: ("#999999", 0.15),
}


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
