"""Which sentences of a context are no longer in force, and which may not be: `values`, asked of units.

Only what a person and the assistant said is heard: no frame of a client's, no prompt of ours, and of what compaction
wrote the user's words in a ledger.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from health.compaction.reading.ledger_page import is_ledger, users_words
from health.compaction.reading.text import passages
from health.compaction.reading.two_things import begin_alike
from health.compaction.reading.value_patterns import TALKING
from health.compaction.reading.value_statements import HEARD, MOST_ECHOED, Statement, reply_to
from health.compaction.reading.value_words import content_of, tokens_of
from health.compaction.reading.values import Book, Said, heard
from health.compaction.terms.units import STATES_REMEMBERED, WRITTEN, Role, Unit, once

logger = logging.getLogger(__name__)

T = TypeVar("T")


def read_or(read: Callable[[], T], nothing: Callable[[str], T]) -> T:
    """What `read` finds. Where it raises, `nothing` is made of the error's name; the log has the traceback."""
    try:
        return read()
    except Exception as error:
        logger.exception("Some of what was stated could not be read, and counts as still in force.")
        return nothing(f"{type(error).__name__}: {error}")


# Where a sentence begins: the id of its message, and a character.
Place = tuple[str, int]
NOTED = "Noted."


class Force(NamedTuple):
    """`gone` are no longer in force: by message the starts and ends of sentences. Of these `outgrown` say nothing but a
    value (a time, an amount, a name) that was told anew in words that say all of the rest. Of `agreed` the assistant
    took note, and of what took their place.

    `beside` are told only together with others: what may not be in force with the later one about the same, a value
    that says nothing of its subject ("the 12th, then") with the sentence of the reply that does. These replies are
    `named`. `stated` hold, in order, each with whether it has a value; `changed` took the place of others, or may have.
    `doubted` are in whose place others may have come.
    `unread` says why nothing could be found.
    """

    gone: Mapping[str, tuple[tuple[int, int], ...]]
    outgrown: Mapping[str, tuple[tuple[int, int], ...]]
    agreed: frozenset[Place]
    beside: Mapping[Place, tuple[Place, ...]]
    stated: Mapping[Place, bool]
    changed: frozenset[Place]
    doubted: frozenset[Place]
    named: frozenset[Place]
    unread: str = ""


@once
def in_force(units: Sequence[Unit]) -> Force:
    """What of the messages is no longer in force, and what may not be: nothing, where they cannot be read."""
    return read_or(lambda: _read(units), nothing)


def nothing(unread: str) -> Force:
    none = frozenset[Place]()
    return Force({}, {}, agreed=none, beside={}, stated={}, changed=none, doubted=none, named=none, unread=unread)


def _read(units: Sequence[Unit]) -> Force:
    said = [(unit.id, one) for unit in units for one in _said(unit)]
    return _force(tuple(name for name, _ in said), tuple(one for _, one in said))


def _said(unit: Unit) -> tuple[Said, ...]:
    """Of an earlier ledger the user's lines, which were taken note of."""
    if is_ledger(unit):
        return Said(unit.role, users_words(unit.content)), Said(Role.ASSISTANT, NOTED)
    if unit.inserted or unit.framed or unit.kind in WRITTEN:
        return ()
    return (Said(unit.role, unit.content if unit.role in TALKING else ""),)


@lru_cache(maxsize=STATES_REMEMBERED)
def _force(ids: tuple[str, ...], said: tuple[Said, ...]) -> Force:
    """Where results of tools were made shorter, or a ledger was put in, nobody said anything new."""
    book = heard(said)
    gone: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in without_force(said, book):
        gone[ids[one.message]].append((one.start, one.end))
    outgrown: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for old in sorted(_outgrown(book), key=lambda one: (one.message, one.start)):
        outgrown[ids[old.message]].append((old.start, old.end))

    def place(message: int, start: int) -> Place:
        return ids[message], start

    named = [(place(*at), place(*reply)) for at, reply in named_in_reply(said, book)]
    followed = list(book.followed())
    changed = {*book.gone.values(), *book.doubted.values(), *(new for old, new in followed if _is_now(new, old))}
    beside: dict[Place, list[Place]] = defaultdict(list)
    for at, other in (*named, *((place(*old.at), place(*new.at)) for old, new in followed)):
        beside[at].append(other)
    return Force(
        gone={name: tuple(places) for name, places in gone.items()},
        outgrown={name: tuple(places) for name, places in outgrown.items()},
        agreed=frozenset(place(*old.at) for old, new in book.gone.items() if old.noted and new.noted),
        beside={at: tuple(others) for at, others in beside.items()},
        stated={place(*one.at): bool(one.values) for one in book.holding()},
        changed=frozenset(place(*one.at) for one in changed),
        doubted=frozenset(place(*one.at) for one in book.doubted if one not in book.gone),
        named=frozenset(reply for _, reply in named),
    )


def _outgrown(book: Book) -> Iterator[Statement]:
    return (old for old, new in book.gone.items() if old.values and not old.content - new.content - old.words)


def _is_now(new: Statement, old: Statement) -> bool:
    """ "The theme is light now", begun as "the theme is dark" was: a change, if perhaps not of that."""
    return new.signs.changes and begin_alike(new, old)


class Outdated(NamedTuple):
    """Characters of a sentence of a message that the message `by` took the force of."""

    message: int
    start: int
    end: int
    by: int


def without_force(said: Sequence[Said], book: Book) -> list[Outdated]:
    """The sentences that the book says are no longer in force, and those in which the assistant said them back, in
    order. The time is linear in what was said."""
    found = {Outdated(old.message, old.start, old.end, by.message) for old, by in book.gone.items()}
    return sorted(found.union(*(_echoes(said, old, by) for old, by in book.gone.items())))


# What the assistant says back


def _echoes(said: Sequence[Said], old: Statement, by: Statement) -> Iterator[Outdated]:
    """Short sentences of the reply that repeat what is no longer in force: a value, or all that was taken note of."""
    values, noted = old.words - by.words, (old.key - by.content or old.key) if old.heard else frozenset()
    for passage in passages(reply_to(said, old.message)[:HEARD]):
        low = passage.text.lower()
        repeats = any(_says(low, value) for value in values) if values else noted and all(key in low for key in noted)
        if len(low) <= MOST_ECHOED and repeats:
            yield Outdated(old.message + 1, passage.start, passage.end, by.message)


def named_in_reply(said: Sequence[Said], book: Book) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where values without a subject stand, each with where a short sentence of the reply says it of something."""
    for one in book.holding():
        values = one.words
        for passage in passages(reply_to(said, one.message)[:HEARD]) if one.bare and values else ():
            low = passage.text.lower()
            if len(low) <= MOST_ECHOED and all(_says(low, value) for value in values) and _is_of_more(low, one):
                yield one.at, (one.message + 1, passage.start)
                break


def _is_of_more(text: str, one: Statement) -> bool:
    """Whether it names something that the statement does not."""
    return not frozenset(content_of(tokens_of(text))) <= one.content | one.words


def _says(text: str, value: str) -> bool:
    """Not within a longer number: 2 is not said with 12."""
    at = text.find(value)
    while at >= 0:
        before, behind = text[max(0, at - 1) : at], text[at + len(value) : at + len(value) + 1]
        if not (value[0].isdigit() and before.isdigit()) and not (value[-1].isdigit() and behind.isdigit()):
            return True
        at = text.find(value, at + 1)
    return False
