"""What a model's summary must pass before it may stand for messages: the first fault found is told in words.

Small models drop what matters and make up what was never said. A fault is no error: the extractive summary is
used instead, and the note says why.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any

from health.compaction.choosing.scoring import coherence
from health.compaction.config import SummarizeOld
from health.compaction.reading.facts import FactKind, facts
from health.compaction.terms.ports import Need, Summarised
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import Kind, Role, Unit, total

_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]?m|i am) (?:sorry|unable|not able|an ai)|sorry,|i (?:can(?:no|['’])t|won['’]t)|as an ai\b"
    r"|unfortunately,? i |抱歉|对不起|很遗憾|我(?:无法|不能)|作为(?:一个|一名)?(?:AI|人工智能))",
    re.IGNORECASE,
)
# A text that was cut ends in the middle of something.
_CUT = re.compile(
    r"(?:[,;:，；：(（\[{\-–—/]|\b(?:and|or|but|the|a|an|of|to|in|with|for|that|which|is|was)|[和与的])\s*$"
)
_INVENTABLE = frozenset(FactKind) - {FactKind.ERROR}
_WORD = re.compile(r"\d+(?:\.\d+)?|[^\s\d]+")
_DIGIT_COMMA = re.compile(r"(?<=\d),(?=\d{3})")


def fault(
    answer: Summarised, units: Sequence[Unit], *, tokens: int, max_tokens: int
) -> Generator[Need, Any, Reason | None]:
    """Why the answer may not stand for these counted units, or None. `tokens` are those of the fenced answer."""
    text = answer.text.strip()
    found = _fault_of_form(answer, text) or _fault_of_size(tokens, max_tokens, source=total(units))
    found = found or _invention(text, units)
    return found or (yield from _incoherence(text, units))


def _fault_of_form(answer: Summarised, text: str) -> Reason | None:
    if not text:
        return Reason(Why.EMPTY)
    if _REFUSAL.match(text):
        return Reason(Why.REFUSES)
    if not answer.finished or _CUT.search(text[-40:]) or text.count("```") % 2:
        return Reason(Why.NOT_FINISHED)
    return None


def _fault_of_size(tokens: int, max_tokens: int, *, source: int) -> Reason | None:
    if tokens >= source:
        return Reason(Why.NOT_SHORTER, {"tokens": tokens, "source": source})
    return Reason(Why.LONGER_THAN_ASKED, {"tokens": tokens, "most": max_tokens}) if tokens > max_tokens else None


def _invention(text: str, units: Sequence[Unit]) -> Reason | None:
    """Names the first identifier, number, path, address or command that no source holds."""
    source = _plain("\n".join(piece for unit in units for piece in _pieces(unit)))
    for fact in facts(text):
        if fact.kind in _INVENTABLE and not _stands(_plain(fact.text), source):
            return Reason(Why.INVENTS, {"name": fact.text[:80]})
    return None


def _pieces(unit: Unit) -> list[str]:
    return [unit.content, *(f"{call.name} {call.arguments}" for call in unit.calls)]


def _plain(text: str) -> str:
    return _DIGIT_COMMA.sub("", text).casefold()


def _stands(fact: str, source: str) -> bool:
    """Whether the source holds it as a whole: 45 is not in 1450. Blanks do not count: "45 %" is "45%"."""
    pattern = r"\s*".join(re.escape(word) for word in _WORD.findall(fact))
    return re.search(rf"(?<![^\W_]){pattern}(?![^\W_])", source) is not None


def _incoherence(text: str, units: Sequence[Unit]) -> Generator[Need, Any, Reason | None]:
    sources = tuple(source for unit in units for source in unit.sources)
    told = Unit(id="told", role=Role.USER, kind=Kind.SUMMARY, content=text, source_ids=sources)
    found = yield from coherence(units, (told,))
    least = SummarizeOld().min_coherence
    return None if found >= least else Reason(Why.SOMETHING_ELSE, {"found": found, "least": least})
