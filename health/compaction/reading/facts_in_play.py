"""Facts that the conversation works with: those the user names, those the agent names again, and recent ones.

They are data, whoever said them. The words around a fact go with it, unless they give orders: a tool's or a
stranger's orders would be read as the user's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from math import log2

from health.compaction.reading.facts import Fact, FactKind, facts, is_binding, normal
from health.compaction.reading.force import Force, Place
from health.compaction.reading.ledger_page import STATED_WEIGHT, Entry
from health.compaction.reading.ledger_page import normal as normal_text
from health.compaction.reading.ledger_patterns import EntryKind
from health.compaction.reading.markers import ORDERS, harmless
from health.compaction.reading.text import of_text, passages
from health.compaction.terms.units import INSTRUCTING, WRITTEN, Kind, Role, Unit

MOST_FACTS = 80
# What the user states in words alone, and what changed another.
WORDS_WEIGHT, CHANGED_WEIGHT = 5.5, 7.0
# Of a longer message, in characters, a sentence is told only for what it names or changed: the rest of it is a tale.
MOST_SHORT = 300
# Of a longer text the beginning and the end are read, in characters.
MOST_READ = 200_000
_RECENT = 8  # units
_LONGEST_PASSAGE = 240
_LONGEST_LINE = 2_000
_AROUND = 60
Key = tuple[FactKind, str]


@dataclass(slots=True)
class _Play:
    """One fact: where it was named last, by whom and in how many messages at all."""

    key: Key
    fact: Fact
    place: int
    roles: set[Role] = field(default_factory=set)
    times: int = 0


def stated_in(
    units: Sequence[Unit], force: Force, *, known: Sequence[Entry], gone: Iterable[str]
) -> Iterator[tuple[int, Entry]]:
    """What the user states and what holds, with its places, in order, as far as no entry of its message says it."""
    told: dict[str, str] = defaultdict(str)
    for entry in known:
        told[entry.source_id] += f"{entry.text}\n"
    said = {*gone, *(normal_text(entry.text) for entry in known)}
    speaking = {source for source, _ in force.stated}
    for place, unit in enumerate(units):
        is_heard = unit.id in speaking and unit.kind is not Kind.LOG
        for passage in passages(unit.content) if is_heard else ():
            at, key = (unit.id, passage.start), normal_text(passage.text)
            if at in force.stated and key not in said and passage.text not in told[unit.id]:
                entry = _stated(unit, passage.text, force, at)
                if entry.facts or at in force.changed or len(unit.content) <= MOST_SHORT:
                    said.add(key)
                    yield place, entry


def _stated(unit: Unit, text: str, force: Force, at: Place) -> Entry:
    weight = CHANGED_WEIGHT if at in force.changed else STATED_WEIGHT if force.stated[at] else WORDS_WEIGHT
    names = tuple(dict.fromkeys(fact.text for fact in facts(text)))
    return Entry(
        kind=EntryKind.FACT, text=text, source_id=unit.id, role=unit.role, facts=names, weight=weight, stated=True
    )


def in_play(units: Sequence[Unit], *, known: Iterable[str], gone: Iterable[str]) -> list[tuple[int, Entry]]:
    """At most MOST_FACTS entries with their places, in order. What `known` texts hold is not said again.

    `gone` are sentences that are no longer in force, as `ledger_page.normal` writes them: none is taken from them.
    """
    told = {key for text in known for key in _keys(text)}
    stale = frozenset(gone)
    recent = len(units) - _RECENT
    plays = [
        play for play in _plays(units, recent) if play.place >= recent or play.times > 1 or Role.USER in play.roles
    ]
    plays.sort(key=lambda play: (-_weight(play, recent), -play.place, play.fact.start))
    entries: list[tuple[int, Entry]] = []
    for play in plays:
        if play.key in told:
            continue
        entry = _entry(units[play.place], play.fact, weight=_weight(play, recent), stale=stale)
        if entry is not None:
            entries.append((play.place, entry))
            told.update(_keys(entry.text))
        if len(entries) == MOST_FACTS:
            break
    return sorted(entries, key=lambda each: each[0])


def readable(unit: Unit) -> str:
    """What a unit says, its calls too; of a very long one the beginning and the end."""
    text = "\n".join([unit.content, *[call.arguments for call in unit.calls]]) if unit.calls else unit.content
    if len(text) <= 2 * MOST_READ:
        return text
    return text[:MOST_READ].rpartition(" ")[0] + "\n" + text[-MOST_READ:].partition(" ")[2]


def _plays(units: Sequence[Unit], recent: int) -> list[_Play]:
    """Of older results none is read: what of them is worked with, the user or the agent has named since."""
    found: dict[Key, _Play] = {}
    for place, unit in enumerate(units):
        if unit.role in INSTRUCTING or unit.kind in WRITTEN or unit.inserted or unit.framed:
            continue
        role = Role.TOOL if unit.role is Role.USER and unit.kind is Kind.LOG else unit.role
        if unit.role is Role.TOOL and place < recent:
            continue
        for key, fact in _named(readable(unit)).items():
            play = found.get(key)
            if play is None:
                play = found[key] = _Play(key, fact, place)
            # The user's own naming of it is worth more than a later one in a result.
            if role is Role.USER or Role.USER not in play.roles:
                play.fact, play.place = fact, place
            play.roles.add(role)
            play.times += 1
    return [play for play in found.values() if _may_matter(play)]


@of_text
def _named(text: str) -> dict[Key, Fact]:
    """The facts of a text by what they name, each where it is named last."""
    return {_key(fact): fact for fact in facts(text)}


def _may_matter(play: _Play) -> bool:
    """A number or a command that only tools print is their noise, and so is a number that the agent says once."""
    if play.roles == {Role.ASSISTANT}:
        return play.times > 1 or play.fact.kind is not FactKind.NUMBER
    return play.roles != {Role.TOOL} or play.fact.kind not in (FactKind.NUMBER, FactKind.COMMAND)


def _weight(play: _Play, recent: int) -> float:
    number = play.fact.kind is FactKind.NUMBER
    return 2.0 * (Role.USER in play.roles) + (play.place >= recent) + min(2.0, log2(play.times)) - 0.5 * number


def _entry(unit: Unit, fact: Fact, *, weight: float, stale: Set[str]) -> Entry | None:
    around = _around(readable(unit), fact)
    text = "" if normal_text(around) in stale else _shown(around, fact)
    if not text:
        return None
    names = tuple(dict.fromkeys(each.text for each in facts(text)))
    return Entry(kind=EntryKind.FACT, text=text, source_id=unit.id, role=unit.role, facts=names, weight=weight)


def _shown(around: str, fact: Fact) -> str:
    """The words around a fact, or it alone, or nothing where it is itself an order or a role's mark."""
    for text in (around, fact.text):
        if not _gives_orders(text):
            return text
    return ""


@of_text
def _gives_orders(text: str) -> bool:
    return is_binding(text) or bool(ORDERS.search(text)) or harmless(text) != text


def _around(text: str, fact: Fact) -> str:
    """The sentence or line that a fact stands in; of a long one the whole words next to the fact."""
    start = text.rfind("\n", 0, fact.start) + 1
    end = text.find("\n", fact.end)
    end = len(text) if end < 0 else end
    line = text[start:end] if end - start <= _LONGEST_LINE else ""
    for passage in passages(line):
        if (
            passage.start <= fact.start - start
            and fact.end - start <= passage.end
            and len(passage.text) <= _LONGEST_PASSAGE
        ):
            return passage.text
    first = text.find(" ", max(start, fact.start - _AROUND), fact.start) + 1 or fact.start
    last = text.rfind(" ", fact.end, min(end, fact.end + _AROUND))
    return text[first : last if last > 0 else fact.end].strip()


def _keys(text: str) -> Iterator[Key]:
    return map(_key, facts(text))


def _key(fact: Fact) -> Key:
    return fact.kind, normal(fact)
