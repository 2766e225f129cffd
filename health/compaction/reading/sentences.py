"""Sentences that a summary could quote, each with a cheap worth. Everything is read; a few candidates remain.

Worth needs no model: what the text keeps speaking of, what holds facts, decisions, headings, the state of work,
and the words of the focus. Linear in the text, so that a tool result of megabytes is read to its end.

A content is also cut into chunks that can be kept or left out alone: slices of the original, by `text.passages`; a long
line (JSON on one line, minified text) at the ends of its records, else at its commas, else at blanks.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from math import log

from health.compaction.reading.digest import read_back
from health.compaction.reading.facts import FactKind, facts
from health.compaction.reading.markers import ORDERS
from health.compaction.reading.text import STOPWORDS, passages, words
from health.compaction.reading.text import Passage as Chunk
from health.compaction.terms.units import Kind, Role, Unit

# Of one message at most so many are candidates: one huge result does not crowd out the conversation.
MOST_OF_ONE = 24
# A message that is nearly all numbers has a worth of its own, but not more than this many facts' worth.
_MOST_FACTS = 4
_LONG_WORD = 24
_FEWEST_WORDS = 2


class Part(IntEnum):
    """Where in a summary a sentence stands."""

    TOLD = 0
    DONE = 1
    OPEN = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """`text` is verbatim, from the message at place `unit`, as its `number`-th piece. `words` have no stopwords."""

    unit: int
    number: int
    role: str
    text: str
    words: tuple[str, ...]
    worth: float = 0.0
    part: Part = Part.TOLD


_DECIDED = re.compile(
    r"\b(?:decided?|decision|agreed?|chose|choose|chosen|going with|settled|confirmed|instead of|because|root cause"
    r"|turns? out"
    r"|must|never|always|do not|don't|only|required?|prefers?|important|deadline|due|budget|allerg\w+|conclusion)\b"
    r"|决定|确定|同意|选择|采用|必须|不要|禁止|务必|总是|只能|因为|原因|截止|预算|过敏|重要|结论",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:todo|to do|still (?:need|have|has|open|missing|fail\w*)|remain(?:s|ing)|next steps?|pending|not yet"
    r"|unresolved|blocked|left to do|open questions?|not (?:done|fixed|finished|working)"
    r"|waiting for|follow[- ]up|needs? to be)\b"
    r"|待办|尚未|还没|还需|下一步|未完成|未解决|待定|等待",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:done|fixed|finished|completed?|merged|shipped|deployed|resolved|implemented|passed|passes|renamed|removed|added"
    r"|created|updated|installed|booked|sent|migrated)\b|已完成|已经|已修复|修复了|完成了|通过了|已部署|预订了",
    re.IGNORECASE,
)
_HEADING = re.compile(r"#{1,6}\s|\*\*[^*\n]{1,80}\*\*:?$|[^\n.!?。]{1,60}[:：]$")
# The lines of a summary or digest that nobody said.
_LABEL = re.compile(r"(?m)^(?:\[[^\n]*\]|Done:|Open:)$\n?")
_FACT_WORTH = {
    FactKind.ERROR: 2.0,
    FactKind.IDENTIFIER: 0.5,
    FactKind.PATH: 0.5,
    FactKind.URL: 0.5,
    FactKind.COMMAND: 0.6,
    FactKind.NUMBER: 0.4,
}
_ROLE_WORTH: dict[str, float] = {Role.USER: 1.0, Role.ASSISTANT: 0.6, Role.TOOL: 0.2}


def sentences(units: Sequence[Unit], *, focus: str = "") -> list[Sentence]:
    """The candidates of every unit, in order, with their worth. Equal sentences are told once, the first."""
    read = [list(_read(at, unit)) for at, unit in enumerate(units)]
    topics = Topics(read, focus)
    seen: set[str] = set()
    found: list[Sentence] = []
    for each in read:
        new = list({one.text: one for one in reversed(each) if one.text not in seen}.values())
        seen.update(one.text for one in new)
        best = heapq.nlargest(MOST_OF_ONE, (topics.judged(one, last=len(each) - 1) for one in new), key=_worth)
        found += sorted(best, key=_number)
    return found


class Topics:
    """What the texts keep speaking of, and what the focus asks for: the measure of every sentence's worth."""

    def __init__(self, read: Sequence[Sequence[Sentence]], focus: str) -> None:
        self._spoken = Counter(word for each in read for one in each for word in one.words)
        self._scale = log(2 + max(self._spoken.values(), default=1))
        self._wanted = frozenset(words(focus)) - STOPWORDS

    def judged(self, one: Sentence, *, last: int) -> Sentence:
        """The sentence with its worth; `last` is the number of its message's last one.

        What a tool says most often is the pattern of its lines, not its topic.
        """
        spoken = one.role != Role.TOOL
        worth = (
            (2.0 if spoken else 0.3) * self._topical(one.words)
            + 2.0 * self._asked_for(one.words)
            + _factual(one.text)
            + _ROLE_WORTH.get(one.role, 0.5)
            + (0.8 if spoken and _DECIDED.search(one.text) else 0.0)
            + (0.4 if _HEADING.match(one.text) else 0.0)
            + (0.3 if one.number in (0, last) else 0.0)
        )
        part = _part(one.text) if spoken else Part.TOLD
        return replace(one, worth=(worth + 0.5 * bool(part)) * _sound(one), part=part)

    def _topical(self, said: tuple[str, ...]) -> float:
        distinct = dict.fromkeys(said)  # in order: a sum's last digit must not differ from process to process
        return sum(log(1 + self._spoken[word]) for word in distinct) / ((len(distinct) + 3) * self._scale)

    def _asked_for(self, said: tuple[str, ...]) -> float:
        return len(self._wanted.intersection(said)) / (len(self._wanted) ** 0.5) if self._wanted else 0.0


def _read(at: int, unit: Unit) -> Iterator[Sentence]:
    """All sentences of a unit: of a digest or summary those of its lines; of a placeholder none."""
    number = 0
    for role, text in _speeches(unit):
        for chunk in chunks(text):
            if not any(map(str.isalnum, chunk.text)):
                continue
            said = tuple(word for word in words(chunk.text) if word not in STOPWORDS)
            yield Sentence(unit=at, number=number, role=role, text=chunk.text, words=said)
            number += 1


def _speeches(unit: Unit) -> list[tuple[str, str]]:
    """Who says what in a unit."""
    if unit.kind is Kind.PLACEHOLDER:
        return []
    if unit.kind is Kind.SUMMARY:
        text = _LABEL.sub("", unit.content)
        return [(line.role, line.text) for line in read_back(f"\n{text}")] or [(unit.role.value, text)]
    calls = [f"{call.name} {call.arguments}" for call in unit.calls if call.arguments.strip(" {}")]
    return [(unit.role.value, text) for text in (unit.content, *calls)]


def _factual(text: str) -> float:
    kinds = [fact.kind for fact in facts(text)]
    return sum(sorted((_FACT_WORTH[kind] for kind in kinds), reverse=True)[:_MOST_FACTS])


def _part(text: str) -> Part:
    if _OPEN.search(text):
        return Part.OPEN
    return Part.DONE if _DONE.search(text) and not text.rstrip().endswith(("?", "？")) else Part.TOLD


def _sound(one: Sentence) -> float:
    """How far a sentence can be told at all: not an order to the model, hardly a scrap or a blob."""
    if one.role == Role.TOOL and ORDERS.search(one.text):
        return 0.0
    if len(one.words) < _FEWEST_WORDS or max(map(len, one.words)) > _LONG_WORD:
        return 0.5
    return 1.0


def _worth(sentence: Sentence) -> float:
    return sentence.worth


def _number(sentence: Sentence) -> int:
    return sentence.number


LONG = 320
RECORD = 120
_RECORD_END = re.compile(r"(?<=[}\]])\s*,\s*|(?<=\n)|(?<=[;；。])\s*")
_FIELD_END = re.compile(r",\s*(?=\")|[,;，；]\s*|\s+")


def chunks(content: str) -> list[Chunk]:
    """The chunks of a content, in order. Linear in its length."""
    if len(content) <= LONG:  # as most messages are: none of its passages is longer
        return list(passages(content))
    found: list[Chunk] = []
    for passage in passages(content):
        if passage.end - passage.start <= LONG:
            found.append(passage)
        else:
            found.extend(_cut(content, passage.start, passage.end))
    return found


def blocks(content: str) -> list[Chunk]:
    """The chunks of a result or of code, short lines taken together: a line like `else:` says nothing alone."""
    found: list[Chunk] = []
    for chunk in chunks(content):
        last = found[-1] if found else None
        if last and chunk.end - last.start <= RECORD:
            found[-1] = Chunk(last.start, chunk.end, content[last.start : chunk.end])
        else:
            found.append(chunk)
    return found


def _cut(content: str, start: int, end: int) -> Iterator[Chunk]:
    """Records, packed up to RECORD characters; one that is longer is cut at its fields."""
    for begin, stop in _packed(content, start, end, _RECORD_END):
        if stop - begin <= LONG:
            yield Chunk(begin, stop, content[begin:stop])
            continue
        for first, last in _packed(content, begin, stop, _FIELD_END):
            for at in range(first, last, LONG):  # a word without blanks: base64, a hash, a script without spaces
                yield Chunk(at, min(at + LONG, last), content[at : min(at + LONG, last)])


def _packed(content: str, start: int, end: int, cut: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    begin = last = start
    for match in cut.finditer(content, start, end):
        if match.start() - begin > RECORD and last > begin:
            yield begin, last
            begin = last
        last = match.end()
    if end - begin > RECORD and last > begin:
        yield begin, last
        begin = last
    if begin < end:
        yield begin, end
