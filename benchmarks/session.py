"""A long working session as a client holds it: facts in the first three requests, then code, logs and long answers.

A case of the development set's form: message 0 is the system's, then request and answer take turns. The same seed
writes the same session.
"""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path

from benchmarks.devsets.assistant import _prose
from benchmarks.devsets.case import Case, Part, Transcript
from benchmarks.devsets.grammar import Deck, Draw, bank
from benchmarks.devsets.logs import build_log

TURNS = 40
MODULES = ("argparse", "calendar", "configparser", "csv", "difflib", "fileinput", "shlex", "tarfile", "zipfile")


def session(seed: int, *, turns: int = TURNS) -> Case:
    writer = _Writer(random.Random(f"session-{seed}"))
    writer.transcript.say("system", writer.words["system"])
    for opening, facts in zip(writer.words["openings"], writer.words["facts"], strict=True):
        writer.plant(opening, facts)
    for _ in range(turns - len(writer.words["facts"])):
        writer.kinds.deal()()
    return writer.transcript.case("session", f"session-{seed}", "")


def asked(turn: int) -> int:
    """The index of the request of a turn; its answer follows. Turns count from 1."""
    return 2 * turn - 1


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng, self.words = rng, bank("session")
        self.transcript = Transcript()
        # One draw for all facts: no name, host or ticket stands for two things.
        ticket = f"{rng.choice(('OPS', 'MIG', 'DATA'))}-{rng.randrange(1000, 9999)}"
        self.draw = Draw(rng, self.words["slots"], ticket=ticket)
        self.kinds = Deck(rng, [self.prose, self.prose, self.code, self.log])
        self.topics, self.modules = Deck(rng, _prose()), Deck(rng, list(MODULES))

    def plant(self, opening: str, facts: list[str | list[str]]) -> None:
        """A request with so many facts in it, and an answer that repeats none."""
        told = [self.draw.say(fact if isinstance(fact, str) else self.rng.choice(fact)) for fact in facts]
        for part in self._turn(" ".join([opening, *told]), self.rng.choice(self.words["noted"])):
            self.transcript.need([part], "stated in turns 1 to 3")

    def prose(self) -> None:
        topic, paragraphs = self.topics.deal()
        begin = self.rng.randrange(max(1, len(paragraphs) - 8))
        self._turn(
            self._one_of("prose", topic=topic), "\n\n".join(paragraphs[begin : begin + self.rng.randrange(5, 12)])
        )

    def code(self) -> None:
        module = self.modules.deal()
        lines = (Path(sysconfig.get_path("stdlib")) / f"{module}.py").read_text().splitlines()
        begin = self.rng.randrange(len(lines) - 100)
        piece = "\n".join(lines[begin : begin + self.rng.randrange(50, 100)])
        self._turn(f"{self._one_of('code', module=module)}\n\n```python\n{piece}\n```", self._one_of("reviews"))

    def log(self) -> None:
        log = build_log(self.rng, self.rng.randrange(30, 55), self._one_of("error"))
        self._turn(f"{self._one_of('log')}\n\n```\n{log}```", self._one_of("findings"))

    def _turn(self, request: str, answer: str) -> tuple[Part, ...]:
        parts = self.transcript.say("user", request)
        self.transcript.say("assistant", answer)
        return parts

    def _one_of(self, lines: str, **given: str) -> str:
        return Draw(self.rng, self.words["slots"], **given).say(self.rng.choice(self.words[lines]))
