"""Excerpts: texts shortened in their place to the sentences that say most, verbatim and in order.

Unlike a summary an excerpt has no label: it is still the message, with a mark where something is left out.
Worth is measured as for summaries, against everything that is excerpted together; no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from health.compaction.reading.digest import GAP
from health.compaction.reading.sentences import Chunk, Sentence, Topics, chunks
from health.compaction.reading.text import STOPWORDS, words
from health.compaction.terms.ports import Kit
from health.compaction.trimming.clamp import clamped, level
from health.compaction.trimming.payload_text import LEFT_OUT

_GAP_TOKENS = 2
# Of what must still go after a count of the whole, so much at once: few counts, whatever the length.
_STEP = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class ExcerptRequest:
    """A text of a speaker, and the share of its tokens that may be left."""

    text: str
    role: str
    ratio: float


def excerpts(wanted: Sequence[ExcerptRequest], *, least_tokens: int, kit: Kit, focus: str = "") -> list[str]:
    """Each text within its share; those of fewer than `least_tokens`, or without a part that fits, as they are.

    An excerpt is never excerpted again: it would erode.
    """
    cut = [chunks(one.text) for one in wanted]
    read = [list(_read(at, one, cut[at])) for at, one in enumerate(wanted)]
    topics = Topics(read, focus)
    tokens = kit.counter.count([one.text for one in wanted])
    sizes = iter(kit.counter.count([chunk.text for each in cut for chunk in each]))
    found: list[str] = []
    for at, one in enumerate(wanted):
        parts = [
            _Part(chunk, next(sizes), topics.judged(sentence, last=len(cut[at]) - 1).worth)
            for chunk, sentence in zip(cut[at], read[at], strict=True)
        ]
        is_long = tokens[at] >= least_tokens and not _is_cut(one.text)
        found.append(_excerpt(one.text, parts, int(one.ratio * tokens[at]), kit) if is_long else one.text)
    return found


def fitting(texts: Sequence[str], *, most_tokens: int, kit: Kit) -> list[str]:
    """The texts within so many tokens together: the longest of them shortened, to one size. Empty is what that leaves
    no room for."""
    sizes = kit.counter.count(texts)
    most = level(sizes, room=most_tokens)
    wanted = [
        ExcerptRequest(text=text, role="user", ratio=min(1.0, most / max(1, size)))
        for text, size in zip(texts, sizes, strict=True)
    ]
    short = excerpts(wanted, least_tokens=most + 1, kit=kit)
    return [clamped(text, max_tokens=most, kit=kit, note=GAP) for text in short]


def _is_cut(text: str) -> bool:
    return GAP.strip() in text or LEFT_OUT in text


@dataclass(frozen=True, slots=True)
class _Part:
    chunk: Chunk
    tokens: int
    worth: float

    @property
    def value(self) -> float:
        """What it is worth for what it costs."""
        return self.worth / (self.tokens + _GAP_TOKENS)


def _read(at: int, one: ExcerptRequest, cut: Sequence[Chunk]) -> Iterator[Sentence]:
    for number, chunk in enumerate(cut):
        said = tuple(word for word in words(chunk.text) if word not in STOPWORDS) or ("",)
        yield Sentence(unit=at, number=number, role=one.role, text=chunk.text, words=said)


def _excerpt(text: str, parts: Sequence[_Part], max_tokens: int, kit: Kit) -> str:
    chosen: list[_Part] = []
    room = max_tokens
    for part in sorted(parts, key=lambda part: -part.value):
        if part.tokens + _GAP_TOKENS <= room:
            chosen.append(part)
            room -= part.tokens + _GAP_TOKENS
    while chosen:
        shorter = _spliced(text, sorted(chosen, key=lambda part: part.chunk.start))
        if kit.tokens(shorter) <= max_tokens:
            return shorter
        del chosen[-max(1, int(_STEP * len(chosen))) :]
    return text


def _spliced(text: str, parts: Sequence[_Part]) -> str:
    """The parts with what stood between them: blanks as they were, a mark for anything else."""
    pieces: list[str] = []
    end = 0
    for part in parts:
        between = text[end : part.chunk.start]
        pieces += [between if not between.strip() else _gap(between), part.chunk.text]
        end = part.chunk.end
    rest = text[end:]
    return "".join([*pieces, rest if not rest.strip() else _gap(rest)]).strip(" ")


def _gap(between: str) -> str:
    """A mark, on a line of its own where whole lines are left out."""
    return "\n" * between.startswith("\n") + GAP + "\n" * between.endswith("\n")
