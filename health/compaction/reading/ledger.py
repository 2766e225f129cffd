"""The ledger: what the user and the system laid down, carried word for word through every compaction.

`extract` reads rules, constraints, deadlines, decisions, goals and preferences from user and system messages only,
and facts from all; the newer replaces the older. `carry` writes a unit of those that no longer stand elsewhere.
Where room is short, the order of sacrifice is that of `EntryKind` from its end:

    | given up | what                     | of these first                    |
    |----------|--------------------------|-----------------------------------|
    | first    | facts                    | those least in play, the oldest   |
    |          | preferences, then goals  | the oldest                        |
    |          | decisions, deadlines     | the oldest                        |
    | last     | constraints, then rules  | the oldest                        |

Of many lines in the same words (a list each of which says "must") all are given up before what says something of its
own, and before a fact that the user told; so are errands, which are over once they are answered ("look up order 7").
A sentence is carried whole or not at all. Of a fact's sentence at least the fact may stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from enum import StrEnum

from health.compaction.reading.facts import FactKind, facts
from health.compaction.reading.facts_in_play import in_play, stated_in
from health.compaction.reading.force import Force, in_force, nothing, read_or
from health.compaction.reading.ledger_page import LEDGER_HEADER, Entry, is_ledger, is_seen, line, normal, page, read
from health.compaction.reading.ledger_patterns import EntryKind, ends_as_question, is_errand, kind_of_sentence
from health.compaction.reading.quoting import own_sentences, sentences
from health.compaction.reading.text import STOPWORDS, of_text, passages, words
from health.compaction.reading.value_patterns import stem
from health.compaction.terms.outcome import LazySequence
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import INSTRUCTING, WRITTEN, Kind, Role, Unit, synthetic_id

__all__ = [
    "LEDGER_HEADER",
    "Entry",
    "EntryKind",
    "Ledger",
    "Presence",
    "carry",
    "extract",
    "is_ledger",
    "laid_down",
    "presence_of",
]

_AT_ONCE = 64
# Where not all has room, a page without the user's words has lines of so many tokens: its headings are half as much.
LEAST_SEEN = 60
# Words are shared where so many entries, and such a share of all, have them; an entry is one of many by most of its.
LEAST_ALIKE, ALIKE_SHARE, MOSTLY = 8, 0.25, 0.6
_LAYING_DOWN = INSTRUCTING | {Role.USER}
_ORDER = {kind: number for number, kind in enumerate(EntryKind)}


class Ledger(LazySequence[Entry]):
    """What is in force after some units, oldest first: what was stated, and facts in play, which are found late.

    `unread` says why some of it could not be found.
    """

    def __init__(
        self, units: Sequence[Unit], stated: Iterable[tuple[int, Entry]], gone: Iterable[str], force: Force
    ) -> None:
        self._units, self._stated, self._gone, self._force = tuple(units), tuple(stated), frozenset(gone), force
        self.unread = force.unread
        super().__init__(self._with_facts)

    @property
    def stated(self) -> tuple[Entry, ...]:
        return tuple(entry for _, entry in self._stated)

    def _with_facts(self) -> tuple[Entry, ...]:
        return read_or(self._read, self._without_facts)

    def _without_facts(self, unread: str) -> tuple[Entry, ...]:
        self.unread = self.unread or unread
        return self.stated

    def _read(self) -> tuple[Entry, ...]:
        stated = [*self._stated, *stated_in(self._units, self._force, known=self.stated, gone=self._gone)]
        facts = in_play(self._units, known=(entry.text for _, entry in stated), gone=self._gone)
        return tuple(entry for _, entry in sorted([*stated, *facts], key=lambda each: each[0]))


def extract(units: Sequence[Unit], taken_back: Iterable[str] = ()) -> Ledger:
    """Linear in their text; the same units, the same entries. None says what a person took back by hand.

    Where they cannot be read, what earlier ledgers hold is carried on.
    """
    taken_back = frozenset(map(normal, taken_back))
    return read_or(lambda: _extracted(units, taken_back), lambda unread: _carried_on(units, taken_back, unread))


def _carried_on(units: Sequence[Unit], taken_back: frozenset[str], unread: str) -> Ledger:
    written = [(at, entry) for at, unit in enumerate(units) if is_ledger(unit) for entry in read(unit.content)]
    held = [(at, entry) for at, entry in written if normal(entry.text) not in taken_back]
    return Ledger(units, held, taken_back, nothing(unread))


class _Book:
    """Hears sentences in order. `gone` are the texts that are no longer in force."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, Entry]] = {}
        self.gone: set[str] = set()

    def keep(self, entry: Entry, *, place: int) -> None:
        """In force from here on. Said twice, an entry has its earliest source and its newest place."""
        key = normal(entry.text)
        _, earlier = self._held.pop(key, (place, entry))
        self._held[key] = place, replace(entry, source_id=earlier.source_id)
        self.gone.discard(key)

    def take_back(self, keys: Iterable[str]) -> None:
        """No longer in force, whatever was said."""
        for key in keys:
            self._held.pop(key, None)
            self.gone.add(key)

    def forget(self, texts: Iterable[str], *, place: int) -> None:
        """What later sentences took the force of, unless it was said again since."""
        self.take_back(key for key in map(normal, texts) if key not in self._held or self._held[key][0] <= place)

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """What is in force, with the place in the history where it was said last, oldest first."""
        return iter(self._held.values())


@of_text
def _kind(sentence: str) -> EntryKind | None:
    return None if ends_as_question(sentence) else kind_of_sentence(sentence)


def _of_unit(unit: Unit) -> Sequence[Entry]:
    """What a unit lays down, or carries on as an earlier ledger."""
    if is_ledger(unit):
        return read(unit.content)
    if not _may_lay_down(unit):
        return ()
    told = sentences(unit.content) if unit.role in INSTRUCTING else own_sentences(unit.content)
    role = Role.USER if unit.spoken else unit.role
    return [Entry(kind=kind, text=text, source_id=unit.id, role=role) for text in told if (kind := _kind(text))]


def _extracted(units: Sequence[Unit], taken_back: Iterable[str]) -> Ledger:
    book, force = _Book(), in_force(tuple(units))
    for place, unit in enumerate(units):
        for entry in _of_unit(unit):
            book.keep(entry, place=place)
    for place, unit in enumerate(units):
        places = force.gone.get(unit.id, ())
        book.forget((unit.content[start:end] for start, end in places), place=place)
    book.take_back(taken_back)
    return Ledger(units, book.entries(), book.gone, force)


def laid_down(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Without the facts, which are only found where somebody looks."""
    return entries.stated if isinstance(entries, Ledger) else entries


def carry(entries: Iterable[Entry], *, standing: Sequence[Unit], budget_tokens: int, kit: Kit) -> Unit | None:
    """A counted unit of at most `budget_tokens` with the entries that do not stand; None if none does, or fits."""
    room = budget_tokens - kit.counter.per_message - kit.tokens(page((), left_out=0))
    if room <= 0:
        return None
    missing = _missing(list(entries), standing)
    ranked = _ranked(missing)
    chosen = _chosen(missing, ranked, room, kit)
    if len(chosen) < len(missing) and _is_hardly_worth_it(list(chosen.values()), kit):
        return None
    while chosen:
        unit = _written([chosen[at] for at in sorted(chosen)], len(missing) - len(chosen), kit)
        if (unit.estimated_tokens or 0) <= budget_tokens:
            return unit
        del chosen[next(at for at in reversed(ranked) if at in chosen)]
    return None


class Presence(StrEnum):
    """How an entry stands in a text: word for word, by its facts alone, or not at all."""

    KEPT = "kept"
    SHORTENED = "shortened"
    GONE = "gone"


def presence_of(entry: Entry, text: str) -> Presence:
    if entry.text in text or line(entry) in text:
        return Presence.KEPT
    is_told = bool(entry.facts) and all(_stands_alone(name, text) for name in entry.facts)
    return Presence.SHORTENED if is_told else Presence.GONE


def _may_lay_down(unit: Unit) -> bool:
    """Only the user and the system: no prompt of the driver's, no frame of a client's, nothing compaction wrote."""
    is_theirs = unit.spoken or unit.role in _LAYING_DOWN
    return is_theirs and not (unit.inserted or unit.framed) and unit.kind not in WRITTEN


def _missing(entries: list[Entry], standing: Sequence[Unit]) -> list[Entry]:
    said = {unit.id: unit.content for unit in standing if not is_ledger(unit)}
    everything = "\n".join(
        [*said.values(), *(call.arguments for unit in standing for call in unit.calls)],
    )
    # What was laid down must stand where it can be read again: a summary that quotes it is summarised next time.
    laid_down = "\n".join(unit.content for unit in standing if _may_lay_down(unit))
    where = {kind: everything if kind is EntryKind.FACT else laid_down for kind in EntryKind}
    return [entry for entry in entries if not _stands(entry, said.get(entry.source_id, ""), where[entry.kind])]


def _stands(entry: Entry, source: str, everything: str) -> bool:
    """Word for word; of a fact it is enough that the fact does, of a user's number beside a word said with it."""
    if entry.text in source or entry.text in everything:
        return True
    if not entry.facts or not all(_stands_alone(name, everything) for name in entry.facts):
        return False
    words = _plain_words(entry.text) - _plain_words(" ".join(entry.facts))
    if entry.role is not Role.USER or not words or any(fact.kind is not FactKind.NUMBER for fact in facts(entry.text)):
        return True
    return all(_stands_beside(words, name, everything) for name in entry.facts)


def _stands_beside(words: frozenset[str], name: str, text: str) -> bool:
    """In one sentence with one of the words: the day on which the harbour closes may be the day of something else."""
    lines = (line for line in text.splitlines() if name in line)
    return any(
        _stands_alone(name, each.text) and words & _plain_words(each.text) for line in lines for each in passages(line)
    )


def _stands_alone(name: str, text: str) -> bool:
    """Not as a part of another: 45 does not stand in 1450."""
    at = text.find(name)
    while at >= 0:
        around = text[max(0, at - 1) : at], text[at + len(name) : at + len(name) + 1]
        if not any(char.isascii() and char.isalnum() for char in around):
            return True
        at = text.find(name, at + 1)
    return False


def _is_hardly_worth_it(chosen: Sequence[Entry], kit: Kit) -> bool:
    seen = all(is_seen(entry) and entry.role is not Role.USER for entry in chosen)
    return seen and sum(kit.counter.count([line(entry) for entry in chosen])) < LEAST_SEEN


def _worth_least(entry: Entry) -> tuple[int, float]:
    return _ORDER[entry.kind], -entry.weight


def _one_of_many(missing: Sequence[Entry]) -> frozenset[int]:
    """The places of what the user stated in words that most of it shares: lines of a list, say, that each say "must".

    Where not all has room they come behind what says something of its own, or the newest few fill the page.
    """
    facts = {at for at, entry in enumerate(missing) if entry.kind is EntryKind.FACT}
    told = {at for at in facts if missing[at].role is Role.USER}
    return _alike(missing, told) | _alike(missing, set(range(len(missing))) - facts)


def _alike(missing: Sequence[Entry], places: Set[int]) -> frozenset[int]:
    words = {at: _plain_words(missing[at].text) for at in places}
    times = Counter(word for said in words.values() for word in said)
    least = max(LEAST_ALIKE, ALIKE_SHARE * len(words))
    shared = {at: sum(times[word] >= least for word in said) for at, said in words.items()}
    return frozenset(at for at, said in words.items() if said and shared[at] >= MOSTLY * len(said))


def _turn(entry: Entry, *, is_of_many: bool) -> int:
    """What says something of its own, then what the user told, then the many alike and errands, then what was only
    seen."""
    if entry.kind is not EntryKind.FACT:
        return 2 if is_of_many else 0
    if entry.role is not Role.USER:
        return 3
    return 2 if is_of_many or is_errand(entry.text) else 1


def _plain_words(text: str) -> frozenset[str]:
    """Without small words, plurals as singulars: "the budgets" and "budget" are the same."""
    return frozenset(word for word in map(stem, {*words(text.replace("’", "'"))} - STOPWORDS) if word.isalpha())


def _ranked(missing: Sequence[Entry]) -> list[int]:
    """Their places, the best first."""
    many = _one_of_many(missing)
    return sorted(
        range(len(missing)), key=lambda at: (_turn(missing[at], is_of_many=at in many), *_worth_least(missing[at]), -at)
    )


def _chosen(missing: Sequence[Entry], ranked: Sequence[int], left: int, kit: Kit) -> dict[int, Entry]:
    """What fits in the `left` tokens by the sum of its lines: the best first, then whatever is small enough.

    Looking on ends with _AT_ONCE entries of which none is.
    """
    chosen: dict[int, Entry] = {}
    for start in range(0, len(ranked), _AT_ONCE):
        batch = [(at, entry) for at in ranked[start : start + _AT_ONCE] for entry in _forms(missing[at])]
        sizes = kit.counter.count([line(entry) for _, entry in batch])
        before = left
        for (at, entry), size in zip(batch, sizes, strict=True):
            if at not in chosen and size <= left:
                chosen[at] = entry
                left -= size
        if left == before:
            break
    return chosen


def _forms(entry: Entry) -> tuple[Entry, ...]:
    """The entry as it is, and a fact also without the words around it."""
    return (entry, replace(entry, text=", ".join(entry.facts))) if entry.facts else (entry,)


def _written(entries: Sequence[Entry], left_out: int, kit: Kit) -> Unit:
    """The unit, counted. Its id is that of its lines; it stands for no message, as none may be dropped for it."""
    unit = Unit(
        id=synthetic_id("ledger", [line(entry) for entry in entries]),
        role=Role.USER,
        content=page(entries, left_out=left_out),
        kind=Kind.SUMMARY,
        source_ids=tuple(dict.fromkeys(entry.source_id for entry in entries)),
    )
    return kit.counted([unit])[0]
