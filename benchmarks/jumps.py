"""The error of an estimate for a request eight times longer than any before it: `python -m benchmarks.jumps`.

Servers are simulated: with various ratios of text tokens to estimates, and with none, half, all or one and a half of
the tools' estimate in the prompt. The peer is one ratio of reported to estimated tokens for text and tools together.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from statistics import fmean

from benchmarks.counting import table
from health.tokens.calibration import Calibrating, RawEstimate, Uncalibrated, apply, learn

SHARES = (0.0, 0.5, 1.0, 1.5)
REPORTS = (1, 3, 5, 10)
RATIOS = (0.7, 0.85, 1.0, 1.2, 1.4)
TOOLS = (300, 1000, 3000)
NOISE, JUMP, TIMES = 0.015, 8, 20


def missed(share: float, reports: int, *, knows_tools: bool) -> list[float]:
    """Errors in percent of the report, for each simulated server and chat."""
    chance = random.Random(f"{share} {reports}")
    return [
        100 * one_miss(chance, share, ratio, tools, reports, knows_tools=knows_tools)
        for ratio, tools, _time in product(RATIOS, TOOLS, range(TIMES))
    ]


def one_miss(
    chance: random.Random, share: float, ratio: float, tools: int, reports: int, *, knows_tools: bool
) -> float:
    def raw(text: int) -> RawEstimate:
        return RawEstimate(text=text, tools=tools) if knows_tools else RawEstimate(text=text + tools)

    known: Calibrating = Uncalibrated()
    text = chance.randint(200, 1500)
    for _report in range(reports):
        reported = round(ratio * (text + share * tools) * chance.gauss(1, NOISE))
        known = learn(known, raw(text), reported=reported)
        text = int(text * chance.uniform(1.1, 1.6))
    return apply(known, raw(JUMP * text)) / (ratio * (JUMP * text + share * tools)) - 1


def rows() -> Iterator[Sequence[str]]:
    yield ["tools written", *(f"{count} reports" for count in REPORTS)]
    for share in SHARES:
        yield [f"× {share:g}", *(cell(share, reports) for reports in REPORTS)]


def cell(share: float, reports: int) -> str:
    one, ours = (missed(share, reports, knows_tools=knows) for knows in (False, True))
    return " → ".join(f"{fmean(map(abs, some)):.0f} ({twentieth(some):+.0f})" for some in (one, ours))


def twentieth(some: Sequence[float]) -> float:
    """The 5th percentile: one in twenty is predicted lower."""
    return sorted(some)[len(some) // 20]


def main() -> None:
    print("Mean error in percent (and the lowest twentieth), with one ratio → with the tools' share")
    table(rows())


if __name__ == "__main__":
    main()
