"""Measure whole runs of compaction: `python -m benchmarks.compaction`. The plan's bound is 2 s for 50 units, warm.

Four tables. One run over 50 units of 200 tokens by each chain and embedder, and its slowest step; the cost of one
message from 50 units of a generated chat to 5,000, which must stay flat: a chat, as it goes on to say new things with
old words; whole calls on conversations of each kind that were never seen before, counting included, and on the same
again; such a call, and the next ones, each of which has one message more. In the first two every unit comes counted,
as in a dialog. Times are the process's own. `--grown` prints the last table alone, `--recordings DIR` also of these.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.devset import KINDS, cases
from benchmarks.meaning import texts
from benchmarks.recordings import read
from health.adapters.embeddings import Embeddings, StaticVectors
from health.adapters.minilm import MiniLM
from health.compaction.compact import compact
from health.compaction.reading.messages import parse
from health.compaction.runner import nobody, run
from health.compaction.terms.outcome import CompactionOutcome
from health.compaction.terms.ports import Answer, Kit, Need
from health.compaction.terms.units import ContextState, Role, Unit, total
from health.services import compact_messages
from health.tokens.counters import counter_for

KIT = Kit(counter=counter_for("gpt-4o"))
UNITS, UNIT_TOKENS, ROUNDS, BOUND_MS = 50, 200, 3, 2000
SIZES, CHARS_OF_A_MESSAGE = (50, 500, 5000), 160
UNSEEN, CHARS, LIMIT, UNSEEN_BOUND_MS = 6, 40_000, 2_500, 5
# Of so many conversations of a kind and length the first call, and those with each of so many messages more.
TALKS, LENGTHS, MORE = 5, (40_000, 160_000), 3
CHAINS: dict[str, Sequence[str] | None] = {"the default chain": None, "select_passages": ("select_passages",)}

Answering = Callable[[Need], Answer]
Messages = Sequence[Mapping[str, Any]]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--grown", action="store_true")
    asked.add_argument("--recordings", type=Path)
    options = asked.parse_args()
    if not options.grown:
        single_runs()
    print(f"\nMilliseconds of a first call, and of one with a message more: medians of {TALKS} conversations\n")
    print(f"{'kind':16}  tokens    first   for 1,000    grown   ratio")
    for length in LENGTHS:
        for kind in KINDS:
            grown(kind, [case.messages for case in cases(kind, 83 + length, TALKS, chars=length)])
    for kind, talks in longest(options.recordings).items():
        grown(kind, talks)


def single_runs() -> None:
    print(
        f"{UNITS} units of {UNIT_TOKENS} tokens to half of them, warm, best of {ROUNDS} runs (bound {BOUND_MS:,} ms)\n"
    )
    print(f"{'chain':16} {'embedder':18} {'ms':>6} {'judged':>6}   slowest step")
    # The clock stands still, so that MiniLM is not given up as too slow on a busy machine.
    models = Embeddings({"minilm": MiniLM, "static": StaticVectors}, clock=lambda: 0.0)
    for answering in (nobody, models.run("static"), models.run("minilm")):
        for name, chain in CHAINS.items():
            one_run(name, chain, answering)
    print("\nMicroseconds for one message, without embedder\n")
    print(f"{'chain':16}" + "".join(f"{size:>8,}" for size in SIZES) + "   last / first")
    for name, chain in CHAINS.items():
        flatness(name, chain)
    print(f"\nMilliseconds for 1,000 tokens not seen before, without a model (bound {UNSEEN_BOUND_MS} ms)\n")
    print(f"{'kind':16}    mean    most   again")
    for kind in KINDS:
        unseen(kind)


def one_run(name: str, chain: Sequence[str] | None, answering: Answering) -> None:
    state = a_state(UNITS)
    timed(state, chain, answering, judge=True)  # loads the model and fills its cache
    ms, outcome = timed(state, chain, answering)
    judged_ms, judged = timed(state, chain, answering, judge=True)
    slowest = max(outcome.steps, key=lambda step: step.ms)
    print(f"{name:16} {judged.embedder:18} {ms:6.0f} {judged_ms:6.0f}   {slowest.phase} {slowest.ms:.0f} ms")


def flatness(name: str, chain: Sequence[str] | None) -> None:
    chat = a_chat(max(SIZES))
    costs = [timed(half_of(chat[:size]), chain, nobody)[0] * 1000 / size for size in SIZES]
    print(f"{name:16}" + "".join(f"{cost:8.0f}" for cost in costs) + f"   {costs[-1] / costs[0]:.2f}")


def unseen(kind: str) -> None:
    """Compact each conversation to about a quarter, twice. Before that the vocabulary is loaded."""
    costs = [(cost_of(case.messages), cost_of(case.messages)) for case in cases(kind, 41, 1 + UNSEEN, chars=CHARS)]
    new, again = zip(*costs[1:], strict=True)
    print(f"{kind:16}{fmean(new):8.1f}{max(new):8.1f}{fmean(again):8.1f}")


def cost_of(messages: Messages) -> float:
    begun = time.process_time()
    outcome = compact_messages(messages, limit_tokens=LIMIT, model="gpt-4o", embedder="none")
    return (time.process_time() - begun) * 1e6 / outcome.estimated_tokens_before


def grown(kind: str, talks: Sequence[Messages]) -> None:
    size, first, later, ratio = (median(column) for column in zip(*map(of_a_talk, talks), strict=True))
    print(f"{kind:16}{size:8,.0f}{first:9.1f}{first * 1000 / size:12.2f}{later:9.1f}{ratio:8.2f}")


def of_a_talk(talk: Messages) -> tuple[float, float, float, float]:
    """Its tokens, the milliseconds of the first call and of a later one, and what part of the first that is."""
    limit = len(str(talk)) // 16
    outcomes, costs = [], []
    for end in range(len(talk) - MORE, len(talk) + 1):
        begun = time.process_time()
        outcomes.append(compact_messages(talk[:end], limit_tokens=limit, model="gpt-4o", embedder="none"))
        costs.append((time.process_time() - begun) * 1000)
    later = median(costs[1:])
    return outcomes[0].estimated_tokens_before, costs[0], later, later / costs[0]


def longest(folder: Path | None) -> dict[str, list[Messages]]:
    """The longest recordings of each kind in a folder (benchmarks/recordings.py)."""
    of_kind: dict[str, list[Messages]] = {}
    for one in read(folder) if folder else ():
        of_kind.setdefault(one.kind, []).append(one.messages)
    return {kind: sorted(found, key=lambda said: -len(str(said)))[:TALKS] for kind, found in of_kind.items()}


def timed(
    state: ContextState, chain: Sequence[str] | None, answering: Answering, *, judge: bool = False
) -> tuple[float, CompactionOutcome]:
    """Milliseconds of the quickest of several runs, and its outcome."""
    results = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        outcome = run(compact(state, KIT, chain=chain, judge=judge), answer=answering, clock=time.perf_counter)
        results.append(((time.process_time() - begun) * 1000, outcome))
    return min(results, key=lambda result: result[0])


def a_state(count: int) -> ContextState:
    """User and assistant in turn."""
    units = KIT.counted(
        Unit(
            id=f"m{number}",
            role=(Role.USER, Role.ASSISTANT)[number % 2],
            content=f"Message {number}. {text}",
            timestamp=float(number),
        )
        for number, text in enumerate(texts(count, UNIT_TOKENS))
    )
    return half_of(units)


@cache
def a_chat(count: int) -> tuple[Unit, ...]:
    """The beginning of one long chat between two friends (benchmarks/devset.py)."""
    (chat,) = cases("chat", 5, 1, chars=CHARS_OF_A_MESSAGE * count)
    return KIT.counted(parse(chat.messages).units)[:count]


def half_of(units: tuple[Unit, ...]) -> ContextState:
    """These units, to be brought to half of their tokens."""
    return ContextState(units=units, limit=total(units) // 2, task="Say how compaction treats the ledger")


if __name__ == "__main__":
    main()
