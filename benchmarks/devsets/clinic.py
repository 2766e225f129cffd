"""A clinic's desk: tools that answer in plain tables of many rows, patients of one name, slots that look alike."""

from __future__ import annotations

import random

from benchmarks.devsets.case import Case, Part, Transcript, stated
from benchmarks.devsets.grammar import Deck, Draw, bank

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri")


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[at]) for row in [columns, *rows]) for at in range(len(columns))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [columns, *rows]]
    return "\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:], f"({len(rows)} rows)"])


class _Desk:
    def __init__(self, name: str) -> None:
        self.rng, self.words = random.Random(name), bank("clinic")
        self.transcript = Transcript()
        self.lines = {line: Deck(self.rng, ways) for line, ways in self.words["lines"].items()}
        self.left: list[tuple[tuple[Part, ...], str]] = []

    def say(self, role: str, line: str, **values: str) -> tuple[Part, ...]:
        return self.transcript.say(role, Draw(self.rng, self.words["slots"], **values).say(self.lines[line].deal()))

    def look(self, name: str, arguments: dict[str, str], table: str) -> int:
        return self.transcript.result(self.transcript.call(name, arguments), table)

    def pick(self, slot: str) -> str:
        return self.rng.choice(self.words["slots"][slot])

    def identify(self) -> None:
        """Patients of the same name, born on days that are easily mixed up."""
        first, last = self.pick("first"), self.pick("last")
        day, month, year = self.rng.randrange(1, 12), self.rng.randrange(1, 12), self.rng.randrange(1935, 2004)
        births = [
            (day, month, year),
            (month, day, year),
            (day, month, year + 10),
            (day + 10, month, year),
            (day, month + 1, year),
        ]
        rows = [
            (f"P-{self.rng.randrange(10**5, 10**6)}", f"{last}, {first}", f"{d:02}.{m:02}.{y}", self.pick("town"))
            for d, m, y in births
        ]
        self.say("user", "hello", first=first, last=last)
        self.say("assistant", "which")
        born = self.say("user", "born", born=rows[0][2])
        own = rows[0][0]
        self.rng.shuffle(rows)
        at = self.look("find_patients", {"name": f"{first} {last}"}, _table(("patient", "name", "born", "town"), rows))
        self.transcript.need([Part(own, at)], "the patient's number", asked=True)
        self.transcript.need(born, "when the patient was born")
        self.say("assistant", "fine")

    def visit(self, ward: str) -> list[tuple[tuple[Part, ...], str]]:
        """A slot is chosen from a long table, now and then another one instead."""
        self.say("user", "ward", ward=ward)
        rows = [self._slot() for _ in range(self.rng.randrange(18, 50))]
        at = self.look("free_slots", {"ward": ward}, _table(("slot", "day", "time", "doctor", "room", "note"), rows))
        self.say("assistant", "offer")
        for again in range(1 + (self.rng.random() < 0.4)):
            row = self.rng.choice(rows)
            if again:
                self.say("user", "refused")
            else:
                self.say("user", "wish", day=row[1], doctor=row[3])
            said = self.say("assistant", "slot", slot=row[0], day=row[1], time=row[2], room=row[4])
        return [((stated(said, Part(row[0], at)),), f"the slot in {ward}, as last chosen")]

    def _slot(self) -> tuple[str, ...]:
        number, hour = self.rng.randrange(40_000, 42_000), self.rng.randrange(7, 18)
        day = f"{self.rng.choice(_DAYS)} {self.rng.randrange(3, 29):02}.06."
        note = self.rng.choice(("", "", "", "fasting", "ground floor", "stairs only", "bring images", "long wait"))
        room = f"{self.rng.choice('ABC')}{self.rng.randrange(1, 4)}.{self.rng.randrange(1, 30):02}"
        return (f"S{number}", day, f"{hour:02}:{self.rng.randrange(0, 60, 10):02}", self.pick("doctor"), room, note)

    def aside(self) -> None:
        self.transcript.need(self.say("user", "aside"), "said in passing", asked=True)
        self.say("assistant", "fine")


def clinic(name: str, size: int) -> Case:
    """Visits to ward after ward, and again, until the size is reached; one is left open and comes next."""
    desk = _Desk(name)
    rng, transcript = desk.rng, desk.transcript
    transcript.say("system", desk.words["system"])
    desk.identify()
    wards = rng.sample(desk.words["slots"]["ward"], len(desk.words["slots"]["ward"]))
    open_ward, rounds = wards[0], 0
    while transcript.chars < size or not rounds:
        for ward in wards if not rounds else wards[1:]:
            chosen = desk.visit(ward)
            if rng.random() < 0.35:
                desk.aside()
            if not rounds and ward == open_ward:
                desk.say("user", "wait")
                desk.say("assistant", "fine")
                for parts, why in chosen:
                    transcript.need(parts, why, asked=True)
                continue
            desk.say("user", "agreed")
            visit = f"V{rng.randrange(10**6, 10**7)}"
            at = desk.look("reserve", {"ward": ward}, f"ok; visit {visit}; ward {ward}; confirmed by the night run")
            said = desk.say("assistant", "done", visit=visit)
            transcript.need([stated(said, Part(f"visit {visit}", at))], "what was done")
            if transcript.chars > size:
                break
        rounds += 1
    desk.say("user", "back", ward=open_ward)
    task = (
        f"Reserve the {open_ward} slot that the patient left open, for the right patient and with what they asked for."
    )
    return transcript.case("service", name, task)
