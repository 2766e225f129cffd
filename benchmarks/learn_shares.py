"""Are the numbers of `select_passages` well chosen? `python -m benchmarks.learn_shares --recordings DIR [--every 4]`.

Each number is tried smaller and larger, one at a time; no model is asked. A change is better only if it helps both
halves of the conversations by more than half a point: an improvement on one half may be chance. The table below lists
all such numbers, and what today's were set on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks import questions
from benchmarks.ablation import CORE, PASSAGES, kept
from benchmarks.figures import OURS, grouped, mean
from benchmarks.quality import engine
from benchmarks.recordings import HALVES, Moment, moments, read

FACTORS = (0.6, 1.6)
ENOUGH = 0.5
RECORDED, CORRECTED, MADE = "recordings", "one half of the corrected conversations", "generated conversations"
ASKED = "questions about made chats and recordings"


class Number(NamedTuple):
    """One number of the engine, and what today's was set on."""

    name: str
    set_on: str
    most: float = 1000.0

    @property
    def today(self) -> float:
        module, _, name = self.name.rpartition(".")
        return float(getattr(import_module(module), name))


NUMBERS = (
    Number(PASSAGES + "TAIL_SHARE", RECORDED, most=0.5),
    Number(PASSAGES + "USER_SHARE", RECORDED, most=0.9),
    Number(PASSAGES + "IN_PLAY", RECORDED),
    Number(PASSAGES + "STATEMENT", CORRECTED),
    Number(PASSAGES + "HOLDS", CORRECTED),
    Number(PASSAGES + "LAST_STATED", CORRECTED),
    Number(PASSAGES + "CHANGED", CORRECTED),
    Number(PASSAGES + "NAMED", CORRECTED),
    Number(CORE + "choosing.worth.SHARE_POWER", RECORDED),
    Number(CORE + "choosing.worth.BREVITY_MOST", RECORDED),
    Number(CORE + "reading.features._ONLY_IN_RESULTS", RECORDED),
    Number(CORE + "choosing.choose.JOIN", MADE),
    Number(CORE + "choosing.worth.TASK_SHARE", ASKED, most=0.9),
    Number(CORE + "choosing.worth.AN_ANSWER", ASKED),
)


def score(cases: Sequence[Moment], ratios: Sequence[str], given: dict[str, float]) -> float:
    """The mean of `know` over kinds and ratios, in per cent; each kind has the same weight."""
    groups = grouped(kept(cases, (), ratios, given)).values()
    return 100 * fmean(mean(group[OURS].values(), "know") for group in groups)


def tried(number: Number) -> list[float]:
    return [min(number.most, number.today * factor) for factor in FACTORS]


def judged(number: Number, halves: dict[str, list[Moment]], ratios: Sequence[str], today: dict[str, float]) -> str:
    gains = {
        value: {half: score(cases, ratios, {number.name: value}) - today[half] for half, cases in halves.items()}
        for value in tried(number)
    }
    cells = [f"{value:.2f}: " + ", ".join(f"{gain:+.1f}" for gain in each.values()) for value, each in gains.items()]
    better = [value for value, each in gains.items() if min(each.values()) > ENOUGH]
    verdict = f"try {better[0]:.2f}" if better else "stands"
    return " | ".join([number.name.removeprefix(CORE), f"{number.today:g}", number.set_on, *cells, verdict])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, required=True)
    parser.add_argument("--ratios", default="25,10")
    parser.add_argument("--every", type=int, default=1, help="only every so many cases")
    given = parser.parse_args()
    engine("health.services:compact_messages")
    halves: dict[str, list[Moment]] = {}
    for half in HALVES:
        conversations = list(read(given.recordings, half=half))
        plain = [moment for one in conversations for moment in moments(one)]
        asked = [moment for one in conversations for moment in questions.of_conversation(one)]
        halves[half] = [*plain[:: given.every], *asked[:: given.every]]
    ratios = given.ratios.split(",")
    today = {half: score(cases, ratios, {}) for half, cases in halves.items()}
    print("| Number | today | set on | smaller (points on each half) | larger | verdict |\n|---|---:|---|---|---|---|")
    for number in NUMBERS:
        print(f"| {judged(number, halves, ratios, today)} |", flush=True)
    print("\nToday: " + ", ".join(f"{half} {share:.1f} %, {len(halves[half])} cases" for half, share in today.items()))


if __name__ == "__main__":
    main()
