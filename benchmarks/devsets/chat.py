"""Chats: facts told in passing, over many sessions, between much that nobody will ask about again.

A fact is told outright, in a reply to a question that holds the noun, or as "it" after an earlier message; some
are changed later, and then only the newest telling is needed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from benchmarks.devsets.case import Case, Part, Transcript
from benchmarks.devsets.grammar import Bank, Deck, Draw, bank

_ASKED = 5  # facts that the task is about
_GAP = 5  # chatter between facts, on average


@dataclass
class _Told:
    """A fact as it last stood: what the task calls it, and where it stands."""

    about: str
    why: str
    parts: tuple[Part, ...]


class _Chat:
    """Two people, or a user and an assistant, taking turns; `line` writes one message of one of them."""

    def __init__(self, rng: random.Random, words: Bank, names: tuple[str, str], *, prefixed: bool) -> None:
        self.rng, self.words, self.names, self.prefixed = rng, words, names, prefixed
        self.transcript = Transcript()
        self.chatter = Deck(rng, words["chatter"])
        self.speaker = 0
        self.told: list[_Told] = []

    def draw(self, speaker: int, **given: str) -> Draw:
        return Draw(self.rng, self.words["slots"], A=self.names[speaker], B=self.names[1 - speaker], **given)

    def line(self, speaker: int, text: str) -> tuple[Part, ...]:
        """Say it, after some chatter of the other where the same speaker would go on."""
        if speaker != self.speaker:
            self.small_talk()
        self.speaker = 1 - self.speaker
        prefix = f"{self.names[speaker]}: " if self.prefixed else ""
        return self.transcript.say("user" if speaker == 0 else "assistant", prefix + text)

    def small_talk(self, times: int = 1) -> None:
        for _ in range(times):
            count = self.rng.choice((1, 1, 2, 3))
            text = " ".join(self.draw(self.speaker).say(self.chatter.deal()) for _ in range(count))
            self.line(self.speaker, text)

    def tell(self, fact: Bank) -> Iterator[None]:
        """Tell a fact in one of its ways, and perhaps change it later: one step each time it is resumed."""
        speaker = self.rng.randrange(2)
        draw = self.draw(speaker)
        told = _Told(draw.say(fact["about"]), "told", ())
        self.told.append(told)
        way = self.rng.choice([way for way in ("tell", "tell", "ask", "it") if way in fact])
        if way == "tell":
            told.parts = self.line(speaker, self.decked(draw, self.rng.choice(fact["tell"])))
        elif way == "ask":
            question, reply = self.rng.choice(fact["ask"])
            told.why = "the reply needs its question"
            asked = self.line(1 - speaker, draw.say(question))
            told.parts = asked + self.line(speaker, self.decked(draw, reply))
        else:
            first, later = self.rng.choice(fact["it"])
            told.why = "the later message says only it"
            named = self.line(speaker, self.decked(draw, first))
            yield
            told.parts = named + self.line(speaker, self.decked(draw, later))
        if "change" in fact and self.rng.random() < 0.6:
            yield
            told.why = "changed: only the newest counts"
            fixed = {
                name: draw.values[name] for name in ("A", "B", "kin", "craft", "instrument") if name in draw.values
            }
            told.parts = self.line(speaker, self.decked(draw.fresh(**fixed), self.rng.choice(fact["change"])))

    def decked(self, draw: Draw, template: str) -> str:
        """The telling, often with chatter before or after it in the same message."""
        text = draw.say(template)
        before, after = self.rng.random() < 0.4, self.rng.random() < 0.4
        parts = [self.chatter.deal() if before else "", "", self.chatter.deal() if after else ""]
        said = [self.draw(self.speaker).say(part) for part in parts]
        said[1] = text
        return " ".join(part for part in said if part)


def _converse(chat: _Chat, size: int, open_session: Callable[[int], None]) -> None:
    """Facts, one after another with chatter between, until the conversation has its size; some go on later."""
    facts, pending = Deck(chat.rng, chat.words["facts"]), list[Iterator[None]]()
    session = 0
    while chat.transcript.chars < size or pending:
        if chat.transcript.chars > 1.5 * size:
            break
        if chat.rng.random() < 0.12 or not session:
            open_session(session)
            session += 1
        later = bool(pending) and (chat.rng.random() < 0.4 or chat.transcript.chars >= size)
        step = pending.pop(0) if later else chat.tell(facts.deal())
        chat.small_talk(chat.rng.randrange(2 * _GAP))
        if next(step, step) is None:
            pending.append(step)


def _finish(chat: _Chat, name: str, ending: str, task: str) -> Case:
    chat.small_talk(4)
    if chat.speaker != 0:
        chat.small_talk()
    chat.transcript.say("user", ending)
    told = [fact for fact in chat.told if fact.parts]
    asked = {id(fact) for fact in chat.rng.sample(told, min(_ASKED, len(told)))}
    for fact in told:
        chat.transcript.need(fact.parts, fact.why, asked=id(fact) in asked)
    topics = "; ".join(fact.about for fact in told if id(fact) in asked)
    return chat.transcript.case("chat", name, task.format(topics=topics), [])


def friends(name: str, size: int) -> Case:
    """Two invented people write to each other over months, their names before each message."""
    rng = random.Random(name)
    words = bank("friends")
    first, second = rng.sample(words["slots"]["name"], 2)
    chat = _Chat(rng, words, (first, second), prefixed=True)
    day = date(2023, 1, 4) + timedelta(days=rng.randrange(300))
    chat.transcript.say(
        "system", f"A conversation between {first} and {second} over several months. Follow it closely."
    )

    def session(number: int) -> None:
        at = day + timedelta(days=9 * number + rng.randrange(6))
        if chat.speaker != 0:
            chat.small_talk()
        hello = chat.draw(0).say("[Hey|Hi|Hello] {B}, [long time no see|how have you been|it's me again]!")
        chat.transcript.say("user", f"[{at:%d %B %Y}] {first}: {hello}")
        chat.speaker = 1

    _converse(chat, size, session)
    ending = f"Thank you both. I am about to ask you some things about what {first} and {second} told each other."
    return _finish(chat, name, ending, "Questions will be asked about these things: {topics}.")


WRITERS = (friends,)
