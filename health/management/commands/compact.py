"""`manage.py compact FILE --limit N`: compact a chat in a file, and report what was lost. Needs no database.

Steps go to standard error while they happen, the result to standard output. The exit status is 1 when the chat
cannot be made to fit, and 2 when the file or an option is not usable.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from enum import StrEnum
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from health.compaction.config import How
from health.compaction.reading.messages import InvalidMessages, Orphans, parse
from health.compaction.terms.configuration import InvalidConfig
from health.compaction.terms.outcome import CompactionOutcome, Extent, Loss, Receipt, Status, Step
from health.compaction.terms.units import Kind, Unit
from health.services import compact_messages
from health.transcripts import NotATranscript, Transcript, read


class Fate(StrEnum):
    """What a compaction did with a message."""

    KEPT = "kept"
    SHORTENED = "shortened"  # still in its place, with fewer words
    SUMMARISED = "summarised"  # replaced by a summary or digest
    DROPPED = "dropped"  # in no summary, at most counted by a placeholder


# More than this scrolls away; --json holds all of it.
_MOST_LINES = 20
_WIDEST = 100
WIDTH, MARGIN, LABELS = 800, 20, 190
ROW, BAR, STRIP = 30, 9, 60
# Colour (they differ in lightness too) and share of the strip's height.
LOOKS: Mapping[Fate, tuple[str, float]] = {
    Fate.KEPT: ("#0072b2", 1.0),
    Fate.SHORTENED: ("#56b4e9", 0.7),
    Fate.SUMMARISED: ("#e69f00", 0.45),
    Fate.DROPPED: ("#999999", 0.15),
}


def fates(before: Sequence[Unit], after: Sequence[Unit]) -> dict[str, Fate]:
    """By the unit's id, in the order of `before`."""
    now = {unit.id: unit.content for unit in after}
    told = {source for unit in after if unit.kind is Kind.SUMMARY for source in unit.sources}
    return {unit.id: _fate(unit, now.get(unit.id), is_told=not told.isdisjoint(unit.sources)) for unit in before}


def _fate(unit: Unit, content: str | None, *, is_told: bool) -> Fate:
    if content is not None:
        return Fate.KEPT if content == unit.content else Fate.SHORTENED
    return Fate.SUMMARISED if is_told else Fate.DROPPED


def step_line(step: Step) -> str:
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
    strip_top = MARGIN * 3 + ROW * max(1, len(outcome.steps))
    height = strip_top + STRIP + MARGIN * 3
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            ' aria-labelledby="title desc" font-family="sans-serif" font-size="12">',
            '<title id="title">Compaction of a conversation</title>',
            f'<desc id="desc">{escape(_description(outcome, found, limit))}</desc>',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            *_steps(outcome, limit),
            *_history(found, strip_top),
            "</svg>\n",
        ]
    )


def _description(outcome: CompactionOutcome, found: Mapping[str, Fate], limit: int) -> str:
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
    """One rectangle for neighbours of the same fate, so that many messages make no large file."""
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


UNUSABLE = 2


class Command(BaseCommand):
    help = "Compacts a chat: a JSON array, JSONL, or an export of OpenAI, Open WebUI or Claude Code."
    # The checks are about databases and servers, which this command does not use.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the chat, or - for standard input")
        parser.add_argument("--limit", type=int, required=True, metavar="N", help="the most estimated tokens")
        parser.add_argument("--task", default="", help="what it is all for; without it, the newest words of the user")
        parser.add_argument("--model", default="", help="whose vocabulary counts, such as gpt-4o or llama-3")
        parser.add_argument("--chain", type=_names, metavar="A,B", help="strategies, one after another")
        parser.add_argument("--how", choices=list(How), help="passages first, or the chain first; default: passages")
        parser.add_argument("--embedder", default="minilm", help="minilm, static or none; default: %(default)s")
        parser.add_argument("--judge", action="store_true", help="measure coherence too: embeds everything")
        parser.add_argument("--refuse-orphans", action="store_true", help="stop at unpaired calls and results")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
        parser.add_argument("--plot", type=Path, metavar="SVG", help="write a picture of what happened")
        parser.add_argument("--out", type=Path, metavar="FILE", help="write the compacted messages as JSON")

    def handle(self, *, file: str, **options: Any) -> None:
        try:
            chat = read(_bytes(file))
            self._show_notes(chat)
            self._compact(chat, options)
        except (NotATranscript, InvalidMessages) as error:
            raise CommandError(f"{file}: {error}", returncode=UNUSABLE) from error
        except (InvalidConfig, OSError) as error:
            raise CommandError(str(error), returncode=UNUSABLE) from error

    def _compact(self, chat: Transcript, options: dict[str, Any]) -> None:
        orphans = Orphans.REFUSE if options["refuse_orphans"] else Orphans.REPAIR
        limit = options["limit"]
        outcome = compact_messages(
            chat.messages,
            limit_tokens=limit,
            task=options["task"],
            model=options["model"],
            chain=options["chain"],
            how=options["how"],
            tools=chat.tools,
            embedder=options["embedder"],
            judge=options["judge"],
            on_step=self._show_step,
            orphans=orphans,
        )
        found = fates(parse(chat.messages, orphans=orphans).units, outcome.state.units)
        if options["as_json"]:
            self.stdout.write(json.dumps(as_json(outcome, found, limit=limit), indent=1))
        else:
            self.stdout.write("\n".join(lines(outcome, found, limit=limit)))
        self._write(options["plot"], svg(outcome, found, limit=limit))
        self._write(options["out"], json.dumps(outcome.messages, indent=1) + "\n")
        if outcome.status is Status.FAILED:
            sys.exit(1)

    def _show_notes(self, chat: Transcript) -> None:
        self.stderr.write(f"Read {len(chat.messages):,} messages ({chat.form}).", self.style.NOTICE)
        for note in chat.notes:
            self.stderr.write(note, self.style.NOTICE)

    def _show_step(self, step: Step) -> None:
        self.stderr.write(step_line(step), self.style.NOTICE)

    def _write(self, target: Path | None, text: str) -> None:
        if target is not None:
            target.write_text(text, encoding="utf-8")
            self.stderr.write(f"Wrote {target}.", self.style.NOTICE)


def _bytes(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
