"""What a person says to a model over many turns: a task, rules, one thing that changes twice, and much that is long.

Two talks of one length differ by their ship.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.standins.compatible import CHARS_PER_TOKEN, Seen

SYSTEM = (
    "You are the assistant of the harbour office at Lindesund. Answer in plain English and name the berth you mean."
)
RULES = {
    2: "Never put a crossing between 12:40 and 13:20, because the lock is closed then.",
    5: "Always write departures in 24-hour time and fares in crowns.",
}
CHANGED = (
    "For groups the deposit is 1,250 crowns.",
    "Correction about groups: the deposit is 1,900 crowns now, not 1,250 crowns.",
    "The deposit for groups changes once more: from today it is 2,475 crowns instead of 1,900 crowns.",
)
NEWEST_VALUE = "2,475 crowns"
# Of a talk in which that changes.
FEWEST_TURNS, TURNS = 30, 60
# The whole is so many windows long.
WINDOWS = 2.6

_WHO = ("the pilot", "a clerk of the customs", "the harbour master", "an engineer", "the cook", "two deckhands")
_DID = ("counted", "looked over", "moved", "painted", "weighed", "asked about", "put away", "drew a plan of")
_WHAT = ("the mooring lines", "nine crates of lamp oil", "the spare anchor", "a stack of old charts", "the tide tables")
_WHERE = ("behind the ice house", "on the north pier", "in the rope walk", "below the crane", "at the fish market")
_WHY = (
    "since the wind had turned to the west",
    "as nobody had done it since the spring",
    "which took the better part of an hour",
    "while the mail boat was being unloaded",
    "so that the yard would be clear by the evening",
    "and found nothing that was worth a note",
)


def prose(seed: int, chars: int) -> str:
    """So many characters, or a few more, of sentences that state nothing anybody needs."""
    dice, said = random.Random(seed), ""
    while len(said) < chars:
        parts = [dice.choice(words) for words in (_WHO, _DID, _WHAT, _WHERE, _WHY)]
        who, did, what, where, why = parts
        said += f"{who.capitalize()} {did} {what} {where}, {why}. "
    return said.strip()


def task(ship: str) -> str:
    return (
        f"The task: draw up the winter timetable of the ferry {ship}, from 3 November to 14 March, with eleven "
        "crossings a day and one reserve boat at the Kvarn berth."
    )


@dataclass(frozen=True)
class Talk:
    """A talk for a window of so many tokens. The ship's name is in each message: no two talks say the same."""

    window: int
    turns: int = TURNS
    windows: float = WINDOWS
    ship: str = "Halvar"

    @property
    def chars(self) -> int:
        """Of one message: the answers of the model are as long as the questions."""
        return int(self.window * self.windows * CHARS_PER_TOKEN / self.turns / 2)

    @property
    def promised(self) -> tuple[str, ...]:
        """What stands in the last request word for word, however long the talk was."""
        changed = (NEWEST_VALUE,) if self.turns >= FEWEST_TURNS else ()
        return (task(self.ship), *RULES.values(), *changed)

    @property
    def changes(self) -> dict[int, str]:
        """By the turn: near the beginning, and after about one and two thirds."""
        return dict(zip((3, self.turns * 7 // 20, self.turns * 7 // 10), CHANGED, strict=True))

    def turn(self, number: int) -> str:
        """Turns count from 1."""
        if number == 1:
            return task(self.ship)
        stated = " ".join(filter(None, (RULES.get(number), self.changes.get(number))))
        about = f"Note {number} from the {self.ship}."
        long = prose(self.window + number, max(0, self.chars - len(stated) - len(about)))
        return " ".join(filter(None, (about, stated, long)))


def missing(seen: Seen, promised: Sequence[str]) -> list[str]:
    """What does not stand in the request, word for word."""
    return [text for text in promised if text not in seen.text]
