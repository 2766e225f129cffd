"""The messages that passages are chosen from, each cut into chunks: units, and the lines of earlier digests."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from health.compaction.reading.digest import GAPS, is_digest, is_notice, read_back
from health.compaction.reading.force import Place, in_force
from health.compaction.reading.messages import kind_of
from health.compaction.reading.sentences import Chunk, blocks, chunks
from health.compaction.reading.text import CJK, of_text
from health.compaction.terms.units import Kind, Role, Unit, tools_by_result
from health.compaction.trimming.json_rows import in_rows
from health.compaction.trimming.records import Rows, superseded, without_records

# Words of a text: no marks of punctuation but what asks, and what code and sums are written with.
_WORD = re.compile(rf"[{CJK}]|[^\W{CJK}]++(?:[-./:@'’]++[^\W{CJK}]++)*+|[^\w\s.,;:!…\"“”()，。；：！、—–-]")
_ASCII_WORD = re.compile(r"[a-z0-9_]++(?:[-./:@']++[a-z0-9_]++)*+|[^\w\s.,;:!\"()-]")
_CONTRACTED = re.compile(r"n['’]t\b")
_COURTESY = frozenset("a an the please hi hello hey thanks again ok okay well just 请 吧 呢 啊 哦 嗯 您".split())  # noqa: SIM905
# What makes another statement of one: a value, a denial, a condition.
_TURNS = re.compile(r"\W|(?:no|not|never|without|if|unless|except|only|until|or|cannot|[不没别无非未勿若除或如只])$")
_DIGIT = re.compile(r"\d")
# Few words are no near repeat of others; a near one has so many more at most, in shares. How many are looked up.
_FEWEST_WORDS, _MOST_MORE, _LOOKED_UP, _COMPARED = 6, 0.25, 4, 4
_PRONOUN = re.compile(r"(?:it|its|that|this|they|them|he|she|those|these|then)\b|[它他她那这此]", re.IGNORECASE)
_SHORT_REPLY = 160
SPOKEN = frozenset({Role.USER, Role.ASSISTANT})
# Nobody types more than this at once; what is pasted is weighed as a result is.
_LONGEST_TYPED = 3000
_OUTPUT = re.compile(r"\s*(?:<[a-z_-]+>|\[?(?:output|stdout|stderr|observation|result|returncode)\b)", re.IGNORECASE)


class Source(NamedTuple):
    """One message: `unit_at` is its unit's place in the state. `voice` is the role that it is weighed as.

    Programs that have no tool roles put a command's output into a user message: it is weighed as a result.
    """

    unit_at: int
    role: Role
    text: str
    chunks: Sequence[Chunk]
    tool: str
    voice: Role
    call_id: tuple[str, str]

    @property
    def is_call(self) -> bool:
        return self.role is Role.ASSISTANT and bool(self.tool)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What a choice stands in: units kept as they are, and tokens for the choice.

    `reduced` are of the kept those that stand without what is no longer in force, empty where nothing else was said.
    """

    kept: frozenset[str]
    room: int
    reduced: Mapping[str, Unit] = field(default_factory=dict)


def sources_of(units: Sequence[Unit], frame: Frame) -> list[Source]:
    """Every message that is not kept as it is, in order; without what is no longer in force, and what is said again."""
    tools, old = tools_by_result(units), superseded(tuple(units))
    left = frame.kept | old.results
    over = {(unit.round_id or "", unit.answers) for unit in units if unit.id in old.results}
    stale = in_force(tuple(units)).gone
    found = [
        _in_force(source, stale.get(unit.id, ()))
        for at, unit in enumerate(units)
        if unit.id not in left and not (is_notice(unit) or unit.inserted)  # prompts of ours are over
        for source in _sources(at, unit, tools.get(unit.id, ""), old.rows.get(unit.id, {}))
        if source.call_id not in over
    ]
    again = _said_again(found, [unit.content for unit in units if unit.id in frame.kept])
    return [source for at, source in enumerate(found) if source.chunks and at not in again]


def _said_again(sources: Sequence[Source], standing: Iterable[str]) -> set[int]:
    """The messages whose text stands in any case, or comes again further down: a repeat is never kept twice.

    What the user said stands for what the assistant said back, not the other way round.
    """
    said = Repeats(standing)
    spoken = [at for at, one in enumerate(sources) if one.role in SPOKEN and not one.tool]
    newest = sorted(spoken, key=lambda at: (sources[at].role is not Role.USER, -at))
    return {at for at in newest if said.again(sources[at].text)}


def unsaid(texts: Sequence[str], chosen: Iterable[int], standing: Iterable[Unit]) -> list[int]:
    """The places of the texts, the last first, that repeat neither a chosen one, nor what stands in any case, nor each
    other."""
    said = Repeats()
    for unit in standing:
        for piece in _pieces(unit.content, unit.role):
            said.again(piece.text)
    for at in sorted(chosen):
        said.again(texts[at])
    return [at for at in reversed(range(len(texts))) if not said.again(texts[at])]


class Repeats:
    """Texts that were said, and whether one of them says all that another says: in the same words, or in more.

    Case, punctuation and words of courtesy are no difference. Each other word may be a value: of a text in which
    another stands in its place, or none, nothing is a repeat. Time is linear: a text is compared with the last few
    that share one of its longest words with it.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._exact: set[str] = set()  # a text knows its hash, a tuple works it out each time
        self._by_word: dict[str, list[Wording]] = defaultdict(list)
        for text in texts:
            self.again(text)

    def again(self, text: str) -> bool:
        """Whether it was said before; from now on it was."""
        wording = _wording(text)
        if wording.joined in self._exact:
            return True
        found = len(wording.words) >= _FEWEST_WORDS and any(_says_all(old, wording) for old in self._longer(wording))
        self._exact.add(wording.joined)
        for word in wording.longest:
            self._by_word[word] = [wording, *self._by_word[word][: _COMPARED - 1]]
        return found

    def _longer(self, wording: Wording) -> Iterator[Wording]:
        """Those that have all of its words, and few others."""
        least, most = len(wording.words), (1 + _MOST_MORE) * len(wording.words)
        near = (old for word in wording.longest for old in self._by_word[word] if least <= len(old.words) <= most)
        return (old for old in near if wording.distinct <= old.distinct)


class Wording(NamedTuple):
    """What tells a text from others: its words (all of a text that says nothing else), the same as one text and without
    order, and the longest of them.
    """

    words: tuple[str, ...]
    joined: str
    distinct: frozenset[str]
    longest: tuple[str, ...]


@of_text
def _wording(text: str) -> Wording:
    low = _CONTRACTED.sub(" not", text.lower())
    pattern = _ASCII_WORD if low.isascii() else _WORD
    words = tuple([word for word in pattern.findall(low) if word not in _COURTESY]) or (" ".join(text.split()),)
    distinct = frozenset(words)
    longest = sorted(sorted(distinct), key=len, reverse=True)[:_LOOKED_UP]
    return Wording(words, " ".join(words), distinct, tuple(longest))


def _says_all(old: Wording, new: Wording) -> bool:
    """Whether its words stand in the longer text in this order, and none of the others may turn the sense."""
    words = new.words
    others, at = list[str](), 0
    for word in old.words:
        if at < len(words) and word == words[at]:
            at += 1
        else:
            others.append(word)
    return at == len(words) and not any(_TURNS.match(word) or _DIGIT.search(word) for word in others)


def _in_force(source: Source, stale: Sequence[tuple[int, int]]) -> Source:
    """Without the sentences that a later one took the place of."""
    if not stale or source.is_call:
        return source
    chunks = [one for one in source.chunks if not any(one.start < end and start < one.end for start, end in stale)]
    return source._replace(chunks=chunks)


def _sources(at: int, unit: Unit, tool: str, over: Rows) -> Iterator[Source]:
    """Those of one unit, without what of its records is `over`."""
    if is_digest(unit):
        yield from _read_back(at, unit)
        return
    text = in_rows(without_records(unit.content, over)) if unit.role is Role.TOOL else unit.content
    source = _source(at, unit.role, text, tool, unit.kind, (unit.round_id or "", unit.answers or ""))
    # No person typed what a client puts before every conversation.
    yield source._replace(voice=Role.ASSISTANT) if unit.framed else source
    for call in unit.calls:
        text = f"{call.name} {in_rows(call.arguments)}"
        yield _source(at, unit.role, text, call.name, Kind.OTHER, (unit.round_id or "", call.id))


def _read_back(at: int, unit: Unit) -> Iterator[Source]:
    """The lines of an earlier digest. A result stands below its call."""
    number = 0
    for line in read_back(unit.content):
        role = Role(line.role)
        number += line.is_call
        yield _source(at, role, line.text, line.tool, kind_of(line.text, role), (unit.id, str(number)))


def is_lines(unit: Unit) -> bool:
    """Does its choice stand as lines of a digest? Otherwise the message is shortened in place."""
    return unit.round_id is not None or is_digest(unit)


def _source(at: int, role: Role, text: str, tool: str, kind: Kind, call_id: tuple[str, str]) -> Source:
    voice = Role.TOOL if role is Role.USER and _is_output(text, kind) else role
    return Source(at, role, text, _pieces(text, voice), tool, voice, call_id)


def _is_output(text: str, kind: Kind) -> bool:
    return len(text) > _LONGEST_TYPED or kind in (Kind.LOG, Kind.CODE) or bool(_OUTPUT.match(text))


@of_text
def _pieces(text: str, role: Role) -> Sequence[Chunk]:
    """The chunks of a text. None reaches over a gap that an earlier choice left."""
    cut = blocks if role is Role.TOOL else chunks
    if "[…]" not in text:
        return cut(text)
    found: list[Chunk] = []
    at = 0
    for gap in [*GAPS.finditer(text), None]:
        piece = text[at : gap.start() if gap else len(text)]
        found.extend(Chunk(at + chunk.start, at + chunk.end, chunk.text) for chunk in cut(piece))
        at = gap.end() if gap else at
    return found


def begins(sources: Sequence[Source], places: Sequence[tuple[int, int]], units: Sequence[Unit]) -> list[Place | None]:
    """For each chunk the id of its message and the character it begins at; none for calls, nobody said them."""
    said_in = ["" if source.is_call else units[source.unit_at].id for source in sources]
    return [(said_in[at], sources[at].chunks[number].start) if said_in[at] else None for at, number in places]


def leaning(
    sources: Sequence[Source],
    places: Sequence[tuple[int, int]],
    starts: Sequence[Place | None],
    beside: Mapping[Place, Sequence[Place]],
) -> list[tuple[int, ...]]:
    """For each chunk those it makes little sense without: a reply's question, what "It moved" is said of, a call.

    A value leans on the newest that is told of the same subject: without that it may be an outdated one. One that
    names no subject leans on the reply that does.
    """
    first = {sources[at].call_id: one for one, (at, number) in enumerate(places) if not number and sources[at].is_call}
    leans: list[tuple[int, ...]] = []
    for at, source in enumerate(sources):
        leans += _leans_of(source, sources[at - 1] if at else None, len(leans), first)
    at_start = {start: one for one, start in enumerate(starts) if start} if beside else {}
    for start, others in beside.items():
        if start in at_start:
            one = at_start[start]
            told = [at_start[other] for other in others if other in at_start]
            leans[one] = tuple(dict.fromkeys([*leans[one], *told]))
    return leans


def _leans_of(
    source: Source, before: Source | None, begin: int, first: Mapping[tuple[str, str], int]
) -> list[tuple[int, ...]]:
    """What each chunk of a message leans on. `begin` is the place of its first chunk, `first` those of calls."""
    numbers = range(len(source.chunks))
    if source.role is Role.TOOL:
        call = (first[source.call_id],) if source.call_id in first else ()
        return [call for _ in numbers]
    if source.is_call:
        return [(begin,) if number else () for number in numbers]
    if source.voice is Role.TOOL:
        return [() for _ in numbers]
    leans: list[tuple[int, ...]] = [
        (begin + number - 1,) if _PRONOUN.match(source.chunks[number].text) else () for number in numbers
    ]
    if before is None:
        leans[0] = ()
    elif _is_reply(source, before):
        leans[0] = (begin - 1,)
    return leans


def _is_reply(source: Source, before: Source) -> bool:
    """A short one to a question."""
    is_short = len(source.text) <= _SHORT_REPLY and before.role is not source.role
    return is_short and before.text.rstrip().endswith(("?", "？"))
