"""What is in force after everything that was said, in order: later words take the place of earlier ones.

An entry leaves when the same is said again, when it is withdrawn, when it is the X of "not X but Y", or when a
later one is about the same and has another value. Each of these looks at a few earlier entries only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from health.compaction.reading.ledger_page import Entry
from health.compaction.reading.ledger_patterns import EntryKind, is_question, kind_of_sentence
from health.compaction.reading.subjects import (
    Subject,
    content_words,
    corrects,
    may_change,
    stale_words,
    subject_of,
    types_of,
    withdrawn_words,
)
from health.compaction.reading.text import of_text
from health.compaction.terms.units import Role

# Of the entries that share a word, so many of the newest are looked at: time stays linear in what was said.
MOST_COMPARED = 64
STATED_WEIGHT = 6.0


@dataclass(frozen=True, slots=True)
class _Held:
    entry: Entry
    place: int
    subject: Subject | None
    words: frozenset[str]


class _Said(NamedTuple):
    """What a sentence says, whatever was said before it."""

    subject: Subject | None
    kind: EntryKind | None


@of_text
def _said(sentence: str) -> _Said | None:
    """None for questions and for plain talk, which most sentences are."""
    if is_question(sentence):
        return None
    subject = subject_of(sentence)
    kind = kind_of_sentence(sentence) or _kind_of_statement(subject)
    return _Said(subject, kind) if subject or kind or may_change(sentence) else None


class Book:
    """Hears sentences in order. `gone` are the texts that are no longer in force."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._keys_by_word: dict[str, list[str]] = defaultdict(list)
        self.gone: set[str] = set()

    def hear(self, sentence: str, *, source_id: str, role: Role, place: int) -> None:
        """A sentence by somebody who may give rules. Only some are kept."""
        said = _said(sentence)
        if said is None:
            return
        hit = self._drop(self._stale(sentence, said.subject), but=sentence)
        kind = said.kind or (EntryKind.DECISION if hit else None)
        if kind is not None:
            self._keep(Entry(kind=kind, text=sentence, source_id=source_id, role=role), said.subject, place)

    def recall(self, entry: Entry, *, place: int) -> None:
        """An entry of an earlier ledger: the user's count as said here, others are data and replace nothing."""
        subject = subject_of(entry.text) if entry.role is Role.USER else None
        if entry.role is Role.USER:
            self._drop(self._stale(entry.text, subject), but=entry.text)
        self._keep(entry, subject, place)

    def take_back(self, texts: Iterable[str]) -> None:
        """No longer in force, whatever was said."""
        keys = {normal(text) for text in texts}
        self._drop(keys & self._held.keys(), but="")
        self.gone |= keys

    def forget(self, texts: Iterable[str], *, place: int) -> None:
        """What later sentences took the force of, unless it was said again since."""
        keys = {normal(text) for text in texts}
        self._drop({key for key in keys if key in self._held and self._held[key].place <= place}, but="")
        # Not `keys - self._held.keys()`: that walks through all that is held.
        self.gone |= {key for key in keys if key not in self._held}

    def _keep(self, entry: Entry, subject: Subject | None, place: int) -> None:
        """In force from here on. Said twice, an entry has its earliest source and its newest place."""
        key = normal(entry.text)
        words = content_words(entry.text)
        earlier = self._held.pop(key, None)
        source_id = earlier.entry.source_id if earlier else entry.source_id
        about = " ".join(sorted(subject.words)) if subject else ""
        weight = STATED_WEIGHT if subject and entry.kind is EntryKind.FACT else entry.weight
        if about or earlier:
            entry = replace(entry, source_id=source_id, about=about, weight=weight)
        self._held[key] = _Held(entry, place, subject, words)
        self.gone.discard(key)
        for word in words | (subject.words if subject else frozenset()):
            self._keys_by_word[word].append(key)

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """What is in force, with the place in the history where it was said last, oldest first."""
        return ((held.place, held.entry) for held in self._held.values())

    def _drop(self, keys: set[str], *, but: str) -> bool:
        if not keys:
            return False
        keys.discard(normal(but))
        for key in keys:
            del self._held[key]
        self.gone |= keys
        return bool(keys)

    def _stale(self, sentence: str, subject: Subject | None) -> set[str]:
        """The entries that a sentence makes stale."""
        stale = self._replaced(subject) if subject else set()
        if not may_change(sentence):
            return stale
        if withdrawn := withdrawn_words(sentence):
            return stale.union(self._with(withdrawn))
        if corrects(sentence):
            stale |= self._corrected(sentence)
        return stale.union(self._with_alternative(sentence, subject))

    def _with_alternative(self, sentence: str, subject: Subject | None) -> list[str]:
        """The newest entry that says the X of "not X but Y", if it is about the same or shares another word."""
        old = stale_words(sentence)
        if not old:
            return []
        new = content_words(sentence) - old
        for key in self._with(old):
            held = self._held[key]
            same = subject and held.subject and subject.words & held.subject.words
            if same or (held.words - old) & new:
                return [key]
        return []

    def _corrected(self, sentence: str) -> set[str]:
        """The newest entry that shares a word with a correction and has numbers, days and times as it has."""
        types = types_of(sentence)
        near = (key for word in sorted(content_words(sentence)) if not types_of(word) for key in self._newest(word))
        alike = [key for key in near if types and types_of(self._held[key].entry.text) == types]
        return {max(alike, key=lambda key: self._held[key].place)} if alike else set()

    def _replaced(self, subject: Subject) -> set[str]:
        """All about exactly the same; else the one that is about a part or more of it. Of two, none: it is unclear."""
        near = [key for word in sorted(subject.words) for key in self._newest(word)]
        stale = {key for key in near if (old := self._held[key].subject) and subject.replaces(old)}
        exact = {key for key in stale if (old := self._held[key].subject) and old.words == subject.words}
        return exact or (stale if len(stale) == 1 else set())

    def _with(self, words: frozenset[str]) -> Iterator[str]:
        """The entries that have all these words, newest first."""
        rarest = min(sorted(words), key=lambda word: len(self._keys_by_word.get(word, ())), default="")
        return (key for key in self._newest(rarest) if words <= self._held[key].words)

    def _newest(self, word: str) -> list[str]:
        said = self._keys_by_word.get(word, [])[-MOST_COMPARED:]
        return [key for key in dict.fromkeys(reversed(said)) if key in self._held]


def normal(text: str) -> str:
    """Texts that differ in blanks, case or their last mark say the same."""
    return " ".join(text.lower().split()).rstrip(".。!！ ")


def _kind_of_statement(subject: Subject | None) -> EntryKind | None:
    """A plain statement is kept if it gives a number, a day, a time, or a thing's one value."""
    return EntryKind.FACT if subject and (subject.types or subject.is_single) else None
