"""Ours beside its rivals: `python -m benchmarks.quality [--kinds chat,code] [--cases 6] [--ratios 25,10] [--repeat]`.

Kept is the share of what is needed later that still stands with its neighbours. With `--repeat` the conversation
grows by thirds and each compaction starts from the result of the one before; given its originals again, ours is
a pure function of them and scores as it does once. The last table pools the task known and unknown, and the kinds:
so a lead is judged. Milliseconds are the process's own; a first compaction, which loads vocabularies and models,
is not timed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from statistics import fmean

import numpy as np

from benchmarks import peers
from benchmarks.devset import KINDS, cases
from benchmarks.devsets.case import Case, Message
from benchmarks.peers import Peer, cuts
from benchmarks.scoring import Scored, scored, tokens

OURS = "ours"
# What each method kept, case by case.
Rows = dict[str, list[float]]


def ours(name: str) -> Peer:
    """The engine named `module:function`, called as `function(messages, limit_tokens=…, task=…, model=…)`."""
    module, _, function = name.partition(":")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    import django

    django.setup()
    engine = getattr(import_module(module), function)

    def compact(messages: Sequence[Message], limit: int, task: str) -> list[Message]:
        outcome = engine(messages, limit_tokens=limit, task=task, model="gpt-4o")
        return list(getattr(outcome, "messages", outcome))

    return compact


def warmed(methods: dict[str, Peer], kind: str, seed: int) -> None:
    """Vocabularies and models are loaded by the first call: that is no cost of the ones that are timed."""
    case = next(cases(kind, seed + 1, 1, chars=15_000))
    for peer in methods.values():
        for task in ("", case.task):
            peer(case.messages, tokens(case.messages) // 4, task)


def judged(peer: Peer, case: Case, *, ratio: float, known: bool, repeat: bool) -> Scored:
    limit = int(tokens(case.messages) * ratio)
    task = case.task if known else ""
    started = time.process_time()
    result = list[Message]()
    for stage in _stages(case.messages, 3 if repeat else 1):
        result = list(peer([*result, *stage], limit, task)) if tokens([*result, *stage]) > limit else [*result, *stage]
    seconds = time.process_time() - started
    needed = [item for item in case.needed if item.asked] if known else None
    return scored(case, result, limit=limit, seconds=seconds, needed=needed)


def _stages(messages: Sequence[Message], count: int) -> Iterator[list[Message]]:
    """The conversation in about equal parts, cut between rounds."""
    whole, size, stage, at = cuts(messages), tokens(messages) / count, list[Message](), 1
    done = 0
    for cut in whole:
        stage += [messages[number] for number in cut]
        done += tokens([messages[number] for number in cut])
        if done >= size * at and cut is not whole[-1]:
            yield stage
            stage, at = [], at + 1
    yield stage


def interval(differences: Sequence[float], draws: int = 2000) -> tuple[float, float]:
    """The 95 % bootstrap interval of a mean over cases."""
    values = np.asarray(differences)
    picks = np.random.default_rng(7).integers(0, len(values), (draws, len(values)))
    low, high = np.percentile(values[picks].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def compare(
    kind: str,
    made: Sequence[Case],
    methods: dict[str, Peer],
    *,
    ratio: float,
    known: bool,
    repeat: bool = False,
    missed: bool = False,
) -> Rows:
    """Print one table, and return what each method scored in each case."""
    rows = {
        name: [judged(peer, case, ratio=ratio, known=known, repeat=repeat) for case in made]
        for name, peer in methods.items()
    }
    kept = {name: fmean(row.kept for row in row_s) for name, row_s in rows.items()}
    title = f"{kind}, {ratio:.0%}, task {'known' if known else 'unknown'}"
    print(f"\n{title}{', after growth in thirds' if repeat else ''} ({len(made)} cases)")
    print(f"{'':18}{'kept':>6}{'4-grams':>9}{'size':>7}{'broken':>8}{'over':>6}{'first':>7}{'last':>6}{'ms/1k':>8}")
    for name in sorted(rows, key=lambda name: -kept[name]):
        print(_line(name, rows[name]))
    shares = {name: [row.kept for row in row_s] for name, row_s in rows.items()}
    if OURS in rows:
        print(_lead(shares))
        if missed:
            _tell_missed(made, rows[OURS])
    return shares


def pooled(tables: Sequence[Rows]) -> Rows:
    """Tables of the same cases as one: each case counts once, with the mean of what was kept of it."""
    return {
        name: [fmean(shares) for shares in zip(*(table[name] for table in tables), strict=True)] for name in tables[0]
    }


def summarise(tables: dict[tuple[str, str], list[Rows]]) -> None:
    """How far ours is ahead with the task known and unknown together: of each kind, and of all kinds."""
    print("\nTask known and unknown together")
    for (ratio, kind), modes in tables.items():
        print(f"{kind:10}{ratio:>4} %  {_lead(pooled(modes))}")
    for ratio in dict.fromkeys(ratio for ratio, _ in tables):
        kinds = [pooled(modes) for (other, _), modes in tables.items() if other == ratio]
        every = {name: [share for kind in kinds for share in kind[name]] for name in kinds[0]}
        print(f"{'all kinds':10}{ratio:>4} %  {_lead(every)}")


def _lead(shares: Rows) -> str:
    """The lead over the rival that is best in this table."""
    best = max((name for name in shares if name != OURS), key=lambda name: fmean(shares[name]))
    ahead = [100 * (mine - other) for mine, other in zip(shares[OURS], shares[best], strict=True)]
    low, high = interval(ahead)
    kept = f"ours {fmean(shares[OURS]):.1%}, {best} {fmean(shares[best]):.1%}"
    return f"{kept}: ahead by {fmean(ahead):+.1f} points, 95 % interval {low:+.1f} to {high:+.1f}"


def _tell_missed(made: Sequence[Case], row: Sequence[Scored]) -> None:
    for case, judgement in zip(made, row, strict=True):
        print(f"{case.id} kept {judgement.kept:.0%}")
        for item in judgement.missed:
            print(f"    {item.why}: {' + '.join(part.text for part in item.parts)}")


def _line(name: str, row: Sequence[Scored]) -> str:
    shares = f"{fmean(r.kept for r in row):6.1%}{fmean(r.verbatim for r in row):9.1%}{fmean(r.size for r in row):7.1%}"
    counts = f"{sum(r.broken for r in row):8}{sum(r.over for r in row):6}"
    users = f"{sum(r.first_user for r in row):7}{sum(r.last_user for r in row):6}"
    return f"{name:18}{shares}{counts}{users}{fmean(r.ms_per_1k for r in row):8.2f}"


def main() -> None:
    wanted = _arguments()
    names = wanted.peers.split(",") if wanted.peers else list(peers.ALL if wanted.all else peers.QUICK)
    methods: dict[str, Peer] = {name: peers.ALL[name] for name in names}
    if wanted.ours != "none":
        methods = {OURS: ours(wanted.ours), **methods}
    modes = [known for known, asked in ((False, wanted.unknown), (True, wanted.known)) if asked] or [False, True]
    told: dict[tuple[str, str], list[Rows]] = {}
    for kind in wanted.kinds.split(","):
        warmed(methods, kind, wanted.seed)
        made = list(cases(kind, wanted.seed, wanted.cases, chars=wanted.chars))
        for ratio in wanted.ratios.split(","):
            share, repeat, missed = int(ratio) / 100, wanted.repeat, wanted.missed
            told[ratio, kind] = [
                compare(kind, made, methods, ratio=share, known=known, repeat=repeat, missed=missed) for known in modes
            ]
    if OURS in methods and len(methods) > 1:
        summarise(told)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--cases", type=int, default=6)
    parser.add_argument("--chars", type=int, default=None, help="characters of a case, otherwise varied")
    parser.add_argument("--ratios", default="50,25,10")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--known", action="store_true", help="only with the task known")
    parser.add_argument("--unknown", action="store_true", help="only with the task unknown")
    parser.add_argument("--repeat", action="store_true")
    parser.add_argument("--missed", action="store_true", help="list what ours lost")
    parser.add_argument("--all", action="store_true", help="the slow rivals too")
    parser.add_argument("--peers", default="", help="names of rivals, by comma")
    parser.add_argument("--ours", default="health.services:compact_messages", help="module:function, or none")
    return parser.parse_args()


if __name__ == "__main__":
    main()
