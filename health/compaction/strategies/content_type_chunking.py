"""Strategy `content_type_chunking`: each kind of content is shortened in its own way, to its own share.

Code loses comments and blank lines and never more, words become an excerpt, logs and data are trimmed; a message
is taken apart at its fences. Plan references, what compaction wrote and what is protected (P1) stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from health.compaction.choosing.scoring import query_of
from health.compaction.config import CompressRatios, PayloadLimits
from health.compaction.laws.invariants import protected_ids
from health.compaction.reading.code import Block, blocks, compress, joined
from health.compaction.reading.code_languages import guess, lexer_of
from health.compaction.terms.ports import Kit, StrategyRun, unchanged
from health.compaction.terms.reasons import Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import WRITTEN, ContextState, Kind, Unit
from health.compaction.trimming.excerpts import ExcerptRequest, excerpts
from health.compaction.trimming.payload_text import LEFT_OUT, looks_like_diff, looks_like_log, trim_log
from health.compaction.trimming.payloads import is_json, trim
from health.compaction.trimming.rewording import in_play, reworded

# A shorter text has nothing to spare: of two short sentences one would go.
LEAST_TOKENS = 40
VERBATIM = 1.0
# Trimming goes by characters, shares by tokens: so often it is tried to meet the one by the other.
_TRIES = 3


@strategy(
    icon="code",
    label=_("Content chunking"),
    choice=_("Shorten by kind: code, text, logs"),
    message=_("Chunking code & plan references…"),
)
def content_type_chunking(state: ContextState, kit: Kit) -> StrategyRun:
    yield from ()
    chunker = _Chunker(kit, state.config.payloads, state.config.content_type_chunking.compress_ratios, in_play(state))
    protected = protected_ids(state.units)
    free = [unit for unit in state.units if unit.id not in protected and chunker.ratio(unit) < VERBATIM]
    parts = [(unit.id, part, chunker.shorter(part, unit)) for unit in free for part in chunker.parts(unit)]
    wanted = [short for _, _, short in parts if isinstance(short, ExcerptRequest)]
    said = iter(excerpts(wanted, least_tokens=LEAST_TOKENS, kit=kit, focus=query_of(state)))
    contents: defaultdict[str, str] = defaultdict(str)
    for unit_id, part, short in parts:
        contents[unit_id] += joined([part.saying(next(said) if isinstance(short, ExcerptRequest) else short)])
    return reworded(contents, state, kit) or unchanged(state, Why.NO_FEWER_WORDS)


@dataclass(frozen=True, slots=True)
class _Chunker:
    """The rules, and what they need of the state."""

    kit: Kit
    limits: PayloadLimits
    ratios: CompressRatios
    keep: frozenset[str]

    def ratio(self, unit: Unit) -> float:
        """The table of kinds; a message is its "text"."""
        if unit.kind in WRITTEN:
            return VERBATIM
        return {
            Kind.CODE: self.ratios.code,
            Kind.MESSAGE: self.ratios.text,
            Kind.PLAN_REF: self.ratios.plan_ref,
            Kind.LOG: self.ratios.log,
        }.get(unit.kind, self.ratios.other)

    def parts(self, unit: Unit) -> tuple[Block, ...]:
        """The blocks of a message; data is one whatever stands in it."""
        whole = unit.kind is Kind.LOG or is_json(unit.content) or looks_like_diff(unit.content)
        return (Block(body=unit.content),) if whole else blocks(unit.content)

    def shorter(self, part: Block, unit: Unit) -> str | ExcerptRequest:
        """A block by the rule for what it is; words are only asked for here, as they are weighed together."""
        if is_json(part.body):
            return self._within(part.body, self.ratios.other, self._trim)
        if _is_code(part, unit):
            return compress(part.body, part.label)
        if unit.kind is Kind.LOG or looks_like_log(part.body):
            return self._within(part.body, self.ratios.log, self._trim_log)
        if looks_like_diff(part.body):
            return self._trim(part.body, None)
        if part.label is not None:
            return compress(part.body, part.label)
        ratio = self.ratios.text if unit.kind is Kind.CODE else self.ratio(unit)
        return ExcerptRequest(text=part.body, role=unit.role, ratio=ratio)

    def _trim(self, text: str, max_chars: int | None) -> str:
        return trim(text, keep=self.keep, max_chars=max_chars, limits=self.limits)

    def _trim_log(self, text: str, max_chars: int | None) -> str:
        return trim_log(text, self.limits, self.keep, max_chars)

    def _within(self, text: str, ratio: float, cut: Callable[[str, int], str]) -> str:
        tokens = self.kit.tokens(text)
        if ratio >= VERBATIM or tokens < LEAST_TOKENS or LEFT_OUT in text:
            return text
        most, chars = int(ratio * tokens), int(ratio * len(text))
        for _attempt in range(_TRIES):
            shorter = cut(text, chars)
            left = self.kit.tokens(shorter)
            if left <= most:
                break
            chars = int(chars * most / left)
        return shorter


def _is_code(part: Block, unit: Unit) -> bool:
    """A fence in a language that is known, or what a tool read; code may have lines alike and is no log."""
    if part.label is None:
        return unit.kind is Kind.CODE and part.body == unit.content
    return lexer_of(part.label or guess(part.body)) is not None
