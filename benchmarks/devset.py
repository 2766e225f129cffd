"""Write development conversations: `python -m benchmarks.devset --kind chat --seed 7 [--count 10]`, one JSON a line.

Each case holds OpenAI messages, what the next step is about, and the spans that will be needed for it, known
because the generator put them there. The same seed writes the same cases.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

from benchmarks.devsets import airline, assistant, chat, clinic, lookalikes, shop, stress, vendored
from benchmarks.devsets.case import Case

# Several generators for each kind, so that nothing is tuned to one of them.
KINDS: dict[str, tuple[Callable[[str, int], Case], ...]] = {
    "chat": (chat.friends, assistant.assistant, chat.chinese, chat.team),
    "service": (shop.shop, airline.airline, clinic.clinic),
    "code": (vendored.vendored, lookalikes.lookalikes, vendored.written),
    "stress": (stress.stress,),
}


def cases(kind: str, seed: int, count: int, *, chars: int | None = None) -> Iterator[Case]:
    """`count` cases, the writers taking turns. `chars` sets a size; otherwise it varies from 25,000 to 120,000."""
    writers = KINDS[kind]
    for number in range(count):
        size = chars or (30_000, 55_000, 90_000, 25_000, 120_000, 70_000)[number % 6]
        yield writers[number % len(writers)](f"{kind}-{seed}-{number}", size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--kind", choices=sorted(KINDS), required=True)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--chars", type=int, default=None)
    wanted = parser.parse_args()
    for case in cases(wanted.kind, wanted.seed, wanted.count, chars=wanted.chars):
        sys.stdout.write(case.as_json() + "\n")


if __name__ == "__main__":
    main()
