"""Customer service of an airline: long flight lists in pretty JSON, calls side by side, one change left open.

Written apart from the shop: reservations have near-miss codes, what counts is said in few words by the traveller
and stands else only as one record of a long list.
"""

from __future__ import annotations

import json
import random
import string
from typing import Any

from benchmarks.devsets.case import Case, Part, Transcript, stated
from benchmarks.devsets.grammar import Deck, Draw, bank

Row = dict[str, Any]
_CABINS = ("basic_economy", "economy", "business")


class _Desk:
    def __init__(self, name: str) -> None:
        self.rng, self.words = random.Random(name), bank("airline")
        self.transcript = Transcript()
        self.lines = {line: Deck(self.rng, ways) for line, ways in self.words["lines"].items()}
        self.spiel = Deck(self.rng, self.words["spiel"])
        self.cities = sorted(set(self.words["slots"]["city"]))
        self.user = self._user()

    def _user(self) -> Row:
        draw = Draw(self.rng, self.words["slots"])
        cards = [
            f"{kind}_{self.rng.randrange(10**6, 10**7)}"
            for kind in ("credit_card", "gift_card", "certificate", "gift_card")
        ]
        return {
            "user_id": draw.say("{first}_{last}_#1000-9999#").lower(),
            "name": {"first_name": draw.values["first"], "last_name": draw.values["last"]},
            "dob": draw.say("19#60-99#-0#1-9#-#10-28#"),
            "payment_methods": {card: {"id": card, "amount": self.rng.randrange(50, 900)} for card in cards},
            "membership": self.rng.choice(["regular", "silver", "gold"]),
            "reservations": self._codes(),
        }  # fmt: skip

    def _codes(self) -> list[str]:
        """Codes of which several differ in one letter only."""
        code = "".join(self.rng.choices(string.ascii_uppercase + string.digits, k=6))
        near = [
            code[:at] + self.rng.choice(string.ascii_uppercase) + code[at + 1 :] for at in self.rng.sample(range(6), 4)
        ]
        far = ["".join(self.rng.choices(string.ascii_uppercase + string.digits, k=6)) for _ in range(4)]
        return self.rng.sample(list(dict.fromkeys([code, *near, *far])), 8)

    def say(self, role: str, line: str, **values: str) -> tuple[Part, ...]:
        text = Draw(self.rng, self.words["slots"], **values).say(self.lines[line].deal())
        spoken = role == "assistant" and self.rng.random() < 0.3
        return self.transcript.say(role, f"{self.spiel.deal()} {text}" if spoken else text)

    def ask(self, *wanted: tuple[str, Row, Any], text: str | None = None) -> list[int]:
        """Calls side by side, and their answers."""
        ids = self.transcript.calls([(name, arguments) for name, arguments, _ in wanted], text)
        return [
            self.transcript.result(call, json.dumps(row[2], indent=2)) for call, row in zip(ids, wanted, strict=True)
        ]

    def reservation(self, code: str, a: str, b: str) -> Row:
        return {
            "reservation_id": code,
            "user_id": self.user["user_id"],
            "origin": a,
            "destination": b,
            "flight_type": self.rng.choice(["one_way", "round_trip"]),
            "cabin": self.rng.choice(_CABINS),
            "flights": [self.flight(a, b, hour) for hour in (9, 15)],
            "passengers": [self.user["name"] | {"dob": self.user["dob"]}],
            "total_baggages": self.rng.randrange(4),
            "insurance": self.rng.choice(["yes", "no"]),
        }

    def flight(self, a: str, b: str, hour: int) -> Row:
        minute = self.rng.randrange(0, 60, 5)
        return {
            "flight_number": f"HAT{self.rng.randrange(1, 400):03}",
            "origin": a,
            "destination": b,
            "scheduled_departure_time_est": f"{hour:02}:{minute:02}:00",
            "status": "available",
            "available_seats": {cabin: self.rng.randrange(21) for cabin in _CABINS},
            "prices": {cabin: self.rng.randrange(50, 600) for cabin in _CABINS},
        }


class _Change:
    """One reservation to be moved: found among others, a flight taken from a long list, paid for."""

    def __init__(self, desk: _Desk, code: str) -> None:
        self.desk, self.code = desk, code
        self.a, self.b, self.c = desk.rng.sample(desk.cities, 3)
        self.needed: list[tuple[tuple[Part, ...], str]] = []

    def find(self) -> None:
        desk, rng = self.desk, self.desk.rng
        desk.say("user", "vague", a=self.a, b=self.b)
        codes = rng.sample([code for code in desk.user["reservations"] if code != self.code], rng.randrange(2, 5))
        codes.insert(rng.randrange(len(codes) + 1), self.code)
        rows = [
            desk.reservation(code, *((self.a, self.b) if code == self.code else rng.sample(desk.cities, 2)))
            for code in codes
        ]
        hold = Draw(rng, {}).say(desk.lines["hold"].deal())
        at = desk.ask(
            *(("get_reservation_details", {"reservation_id": row["reservation_id"]}, row) for row in rows), text=hold
        )
        record = Part(f'"reservation_id": "{self.code}"', at[codes.index(self.code)])
        said = desk.say("assistant", "located", code=self.code, a=self.a, b=self.b)
        self.needed.append(((stated(said, record),), "the reservation it is about"))

    def choose(self) -> None:
        desk, rng = self.desk, self.desk.rng
        desk.say("user", "when")
        flights = [desk.flight(self.a, self.b, hour) for hour in sorted(rng.sample(range(5, 24), rng.randrange(6, 14)))]
        asked = {"origin": self.a, "destination": self.b, "date": f"2024-05-{rng.randrange(16, 30)}"}
        at = desk.ask(("search_direct_flight", asked, flights))[0]
        desk.say("assistant", "options")
        cabin = rng.choice(_CABINS[1:])
        chosen = self._take(rng.choice(("take", "take_time")), rng.choice(flights), cabin, at)
        if rng.random() < 0.4:
            desk.say("assistant", "heard")
            chosen = self._take("retake", rng.choice(flights), cabin, at)
        self.needed.append((chosen, "the flight, as last chosen"))

    def _take(self, line: str, flight: Row, cabin: str, at: int) -> tuple[Part, ...]:
        """What the traveller says, and where they name only the hour, the record that it stands for."""
        number, time = flight["flight_number"], flight["scheduled_departure_time_est"][:5]
        said = self.desk.say("user", line, number=number, time=time, cabin=cabin)
        return said if number in said[0].text else (Part(f'"flight_number": "{number}"', at), *said)

    def settle(self) -> None:
        desk = self.desk
        desk.say("assistant", "heard")
        self.needed.append((desk.say("user", "luggage"), "the bags"))
        desk.say("assistant", "heard")
        method = desk.rng.choice(sorted(desk.user["payment_methods"]))
        self.needed.append((desk.say("user", "money", method=method), "how it is paid"))
        self.paid = method

    def book(self) -> None:
        desk, confirm = (
            self.desk,
            "".join(self.desk.rng.choices(string.ascii_uppercase, k=3)) + str(self.desk.rng.randrange(1000, 9999)),
        )
        total = f"${desk.rng.randrange(60, 900)}"
        arguments = {"reservation_id": self.code, "payment_id": self.paid}
        changed = desk.reservation(self.code, self.a, self.b) | {"confirmation": confirm}
        at = desk.ask(("update_reservation_flights", arguments, changed))[0]
        record = Part(f'"confirmation": "{confirm}"', at)
        said = desk.say("assistant", "booked", confirm=confirm, total=total)
        desk.transcript.need([stated(said, record)], "what was done")


def airline(name: str, size: int) -> Case:
    """Changes until the size is reached; one is put off and is what comes next."""
    desk = _Desk(name)
    rng, transcript = desk.rng, desk.transcript
    transcript.say("system", desk.words["system"])
    desk.say("user", "opening", user=desk.user["user_id"])
    account = desk.ask(("get_user_details", {"user_id": desk.user["user_id"]}, desk.user))[0]
    desk.say("assistant", "heard")
    transcript.need([Part(f'"user_id": "{desk.user["user_id"]}"', account)], "who the traveller is", asked=True)
    put_off, opened = rng.randrange(2), None
    for number, code in enumerate(rng.sample(desk.user["reservations"], 8)):
        change = _Change(desk, code)
        for step in (change.find, change.choose, change.settle):
            step()
            if rng.random() < 0.3:
                desk.say("assistant", "heard")
                transcript.need(desk.say("user", "drop", c=change.c), "said in passing", asked=True)
        if number == put_off:
            desk.say("user", "park")
            opened = change
        else:
            change.book()
        if opened and transcript.chars > size:
            break
        desk.say("assistant", "heard")
    for parts, why in opened.needed if opened else ():
        transcript.need(parts, why, asked=True)
    desk.say("user", "return")
    task = f"Make the flight change from {opened.a} to {opened.b} that the traveller put off, exactly as they want it."
    return transcript.case("service", name, task)
