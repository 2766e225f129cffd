"""A person and an assistant: facts in passing within requests, long answers, and choices from the answers' lists.

Half of the answers are made of short tips, half are prose of Python's own reference, so that they do not repeat.
"""

from __future__ import annotations

import random
from functools import cache
from pydoc_data.topics import topics

from benchmarks.devsets.case import Case, Part, Transcript
from benchmarks.devsets.chat import Told, finished
from benchmarks.devsets.grammar import Bank, Deck, Draw, bank, slots_in


class _Talk:
    def __init__(self, rng: random.Random, words: Bank, size: int) -> None:
        self.rng, self.words = rng, words
        self.facts = rng.sample(words["facts"], len(words["facts"]))[: 1 + size // 2000]
        self.picks = rng.sample(words["picks"], len(words["picks"]))
        self.size, self.steps = size, 1 + 1.5 * len(self.facts)
        self.transcript = Transcript()
        self.told: list[Told] = []
        self.changes: list[tuple[Told, Bank, Draw]] = []
        self.said = 0
        self.topics, self.prose = Deck(rng, words["topics"]), Deck(rng, _prose())

    def say(self, template: str) -> str:
        return Draw(self.rng, self.words["slots"]).say(template)

    def session(self) -> None:
        """A request, in which something may be told, its answer, and more questions on the same."""
        technical = self.rng.random() < 0.5
        heading, paragraphs = self.prose.deal() if technical else ("", [])
        topic = self.topics.deal()
        request = f"How does `{heading}` work in Python?" if technical else self.say(self.rng.choice(topic["ask"]))
        self._with_fact(request)
        self._answer(paragraphs, topic)
        for _ in range(self.rng.randrange(3)):
            self._with_fact(self.say(self.rng.choice(self.words["follow"])))
            self._answer(paragraphs, topic)

    def _answer(self, paragraphs: list[str], topic: Bank) -> None:
        if paragraphs:
            first = self.rng.randrange(len(paragraphs))
            body = "\n\n".join(paragraphs[first : first + self.rng.randrange(1, 4)])
        else:
            tips = self.rng.sample(topic["tips"], self.rng.randrange(3, 7))
            body = "\n".join(f"{number}. {tip}" for number, tip in enumerate(tips, 1))
        opening, closing = (self.say(self.rng.choice(self.words[part])) for part in ("openings", "closings"))
        self.transcript.say("assistant", f"{opening}\n\n{body}\n\n{closing}")

    def _with_fact(self, request: str) -> None:
        """The request, with a fact or a change of one in it whenever one is due."""
        due = self.transcript.chars * self.steps > self.said * self.size
        order = self.rng.choice(self.words["aside_first"])
        if due and self.changes and self.rng.random() < 0.4:
            told, fact, draw = self.changes.pop(0)
            told.why = "changed: only the newest counts"
            same = {slot: draw.values[slot] for slot in slots_in(fact["about"])}
            self._say_fact(told, draw.fresh(**same).say(self.rng.choice(fact["change"])), order, request)
        elif due and self.facts:
            fact = self.facts.pop()
            draw = Draw(self.rng, self.words["slots"])
            self.told.append(Told(draw.say(fact["about"])))
            self._say_fact(self.told[-1], draw.say(self.rng.choice(fact["tell"])), order, request)
            self.changes += [(self.told[-1], fact, draw)] * ("change" in fact)
        else:
            self.transcript.say("user", request)

    def _say_fact(self, told: Told, fact: str, order: str, request: str) -> None:
        told.parts = self.transcript.say("user", order.format(fact=fact, request=request))
        self.said += 1

    def pick(self) -> None:
        """The assistant lists things, the user takes one by its number: list and choice are needed together."""
        pick = self.picks.pop()
        draw = Draw(self.rng, self.words["slots"])
        items = [draw.say(item) for item in pick["items"].split("; ")]
        self.transcript.say("user", f"Can you suggest some options? It's about {pick['about'].removeprefix('the ')}.")
        listed = "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
        self.transcript.say("assistant", f"{self.say(self.rng.choice(self.words['openings']))}\n\n{listed}")
        template = self.rng.choice(pick["pick"])
        chosen = next(at for word, at in _ORDINALS.items() if word in template)
        shown = Part(items[chosen], len(self.transcript.messages) - 1)
        self.told.append(
            Told(pick["about"], "a choice by number", (shown, *self.transcript.say("user", draw.say(template))))
        )
        self.transcript.say("assistant", self.say(self.rng.choice(self.words["closings"])))


_ORDINALS = {"third wins": 2, "number three": 2, "second": 1, "first": 0, "last one": 3}


@cache
def _prose() -> list[tuple[str, list[str]]]:
    """Headings and paragraphs of the Python reference, which every Python carries."""
    return [
        (heading, [paragraph for paragraph in text.split("\n\n") if 80 < len(paragraph) < 1500])
        for heading, text in sorted(topics.items())
        if text.count("\n\n") > 5
    ]


def assistant(name: str, size: int) -> Case:
    """Requests until the size is reached, now and then a choice from a list."""
    rng = random.Random(name)
    words = bank("assistant")
    talk = _Talk(rng, words, size)
    talk.transcript.say("system", words["system"])
    while talk.transcript.chars < size:
        talk.session()
        if talk.picks and rng.random() < 0.1:
            talk.pick()
    talk.transcript.say("user", talk.say(words["ending"]))
    return finished("chat", name, talk.transcript, talk.told, words["task"], rng)
