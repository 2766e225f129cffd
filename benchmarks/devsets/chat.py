"""Chats: facts told in passing, over many sessions, between much that nobody will ask about again.

A fact is told outright, in a reply to a question that holds the noun, or as "it" after an earlier message; some
are changed later, and then only the newest telling is needed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import count

from benchmarks.devsets.case import Case, Part, Transcript
from benchmarks.devsets.grammar import Bank, Deck, Draw, bank, slots_in

_ASKED = 5  # facts that the task is about
_END = object()


@dataclass
class Told:
    """A fact as it last stood: what the task calls it, and where it stands."""

    about: str
    why: str = "told"
    parts: tuple[Part, ...] = ()


class Chat:
    """Two people taking turns, their names before what they say."""

    def __init__(self, name: str, bank_name: str) -> None:
        self.name, self.rng = name, random.Random(name)
        self.words = bank(bank_name)
        people = self.words["slots"].get("name") or self.words["slots"]["who"]
        self.names = self.rng.sample(people, 2)
        self.transcript = Transcript()
        self.chatter = Deck(self.rng, self.words["chatter"])
        self.speaker = 0
        self.told: list[Told] = []
        self.day = date(2023, 1, 4) + timedelta(days=self.rng.randrange(300))

    def draw(self, speaker: int, **given: str) -> Draw:
        return Draw(self.rng, self.words["slots"], A=self.names[speaker], B=self.names[1 - speaker], **given)

    def frame(self, name: str) -> str:
        return self.draw(0).say(self.words["frame"][name])

    def line(self, speaker: int, text: str) -> tuple[Part, ...]:
        """Say it, after some chatter of the other where the same speaker would go on."""
        if speaker != self.speaker:
            self.small_talk()
        self.speaker = 1 - self.speaker
        return self.transcript.say("assistant" if speaker else "user", f"{self.names[speaker]}: {text}")

    def small_talk(self, lines: int = 1) -> None:
        for _ in range(lines):
            times = self.rng.choice((1, 1, 2, 3))
            self.line(self.speaker, " ".join(self.chat() for _ in range(times)))

    def chat(self) -> str:
        return self.draw(self.speaker).say(self.chatter.deal())

    def wrapped(self, text: str) -> str:
        """What matters, often with chatter before or after it in the same message."""
        before, after = self.rng.random() < 0.4, self.rng.random() < 0.4
        return " ".join([*([self.chat()] * before), text, *([self.chat()] * after)])

    def open_session(self) -> None:
        """Some days later the first of them writes again, with the date before it."""
        self.day += timedelta(days=self.rng.randrange(3, 15))
        if self.speaker != 0:
            self.small_talk()
        self.transcript.say("user", f"[{self.day.isoformat()}] {self.names[0]}: {self.frame('hello')}")
        self.speaker = 1

    def tell(self, fact: Bank, speaker: int) -> Iterator[None]:
        """Tell a fact in one of its ways, and perhaps change it later: one step each time it is resumed."""
        draw = self.draw(speaker)
        told = Told(draw.say(fact["about"]))
        self.told.append(told)
        way = self.rng.choice([way for way in ("tell", "tell", "ask", "it") if way in fact])
        if way == "tell":
            told.parts = self.line(speaker, self.wrapped(draw.say(self.rng.choice(fact["tell"]))))
        elif way == "ask":
            question, reply = self.rng.choice(fact["ask"])
            told.why = "the reply needs its question"
            asked = self.line(1 - speaker, draw.say(question))
            told.parts = asked + self.line(speaker, self.wrapped(draw.say(reply)))
        else:
            first, later = self.rng.choice(fact["it"])
            told.why = "the later message says only it"
            named = self.line(speaker, self.wrapped(draw.say(first)))
            yield
            told.parts = named + self.line(speaker, self.wrapped(draw.say(later)))
        if "change" in fact and self.rng.random() < 0.6:
            yield
            told.why = "changed: only the newest counts"
            same = {slot: draw.values[slot] for slot in slots_in(fact["about"])}
            changed = self.draw(speaker, **{slot: same[slot] for slot in same if slot not in "AB"})
            told.parts = self.line(speaker, self.wrapped(changed.say(self.rng.choice(fact["change"]))))

    def converse(self, size: int, each: int) -> None:
        """Every fact once for each of them, one in `each` characters at most, evenly spread; some go on later."""
        told = [self.tell(fact, speaker) for fact in self.words["facts"] for speaker in (0, 1)]
        self.rng.shuffle(told)
        told, pending = told[: size // each], list[Iterator[None]]()
        gap = size / (1.5 * len(told))
        self.open_session()
        for turn in count(1):
            if not (told or pending):
                break
            while self.transcript.chars < gap * turn * self.rng.uniform(0.9, 1.1):
                self.open_session() if self.rng.random() < 0.03 else self.small_talk()
            step = self.rng.choice(pending) if pending and (not told or self.rng.random() < 0.4) else told.pop()
            ended = next(step, _END) is _END
            pending = [other for other in pending if other is not step] + [step] * (not ended)
        self.small_talk(4)
        if self.speaker == 1:
            self.small_talk()

    def case(self, size: int, each: int = 900) -> Case:
        self.transcript.say("system", self.frame("system"))
        self.converse(size, each)
        self.transcript.say("user", self.frame("ending"))
        return finished("chat", self.name, self.transcript, self.told, self.words["frame"]["task"], self.rng)


def finished(
    kind: str, name: str, transcript: Transcript, told: list[Told], task: str, rng: random.Random
) -> Case:  # fmt: skip
    """The case: all that was told is needed, the last of what has one name; some of it is asked for by the task."""
    in_order = sorted((fact for fact in told if fact.parts), key=lambda fact: fact.parts[-1].at)
    told = list({fact.about: fact for fact in in_order}.values())
    asked = {id(fact) for fact in rng.sample(told, min(_ASKED, len(told)))}
    for fact in told:
        transcript.need(fact.parts, fact.why, asked=id(fact) in asked, about=fact.about)
    topics = "; ".join(fact.about for fact in told if id(fact) in asked)
    return transcript.case(kind, name, task.format(topics=topics))


def friends(name: str, size: int) -> Case:
    """Two invented people write to each other over months."""
    return Chat(name, "friends").case(size)


def chinese(name: str, size: int) -> Case:
    """The same in Chinese, whose characters carry about twice as much."""
    return Chat(name, "chinese").case(size // 3, each=300)


class _Team(Chat):
    """Colleagues in one channel, all of them users, and an assistant that says little."""

    def line(self, speaker: int, text: str) -> tuple[Part, ...]:
        parts = self.transcript.say("user", text)
        if self.rng.random() < 0.15:
            self.transcript.say("assistant", self.draw(0).say(self.rng.choice(self.words["bot"])))
        return parts

    def chat(self) -> str:
        return self.draw(0).say(self.chatter.deal())

    def small_talk(self, lines: int = 1) -> None:
        for _ in range(lines):
            self.line(0, self.chat())

    def wrapped(self, text: str) -> str:
        return text

    def open_session(self) -> None:
        self.day += timedelta(days=self.rng.randrange(1, 5))
        self.line(0, f"--- {self.day:%A, %d %B} ---\n{self.chat()}")


def team(name: str, size: int) -> Case:
    """A project's channel: decisions, owners, dates and limits among noise."""
    return _Team(name, "team").case(size * 2 // 3, each=600)
