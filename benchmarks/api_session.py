"""A session of 40 turns that outgrows its model's window: `python -m benchmarks.api_session [--seeds 1 2 3]`.

A client resends its whole history each time. The server takes 8,192 tokens (benchmarks/small_window.py): it is asked
directly, through Dominds, and through context-guardian, which gets the same window and the same reserve for answers.
A fact counts where it stands word for word among half of its neighbours (benchmarks/scoring.py). `--install` installs
the peer.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import httpx

from benchmarks.devsets.case import Case
from benchmarks.gateways import GATEWAYS, Gateway, Starts, direct, install, installed
from benchmarks.session import TURNS, asked, session
from benchmarks.small_window import WINDOW, Seen, serving

WAYS: dict[str, Starts] = {"direct": direct, **{name: GATEWAYS[name] for name in ("dominds", "context-guardian")}}


@dataclass(frozen=True, kw_only=True)
class SessionOutcome:
    """One session. `answered`: the turns that got the answer written for them."""

    answered: int
    first_refused: int
    seconds: float
    seen: Seen
    facts: int

    def kept(self, turns: int) -> float:
        """The share of facts that the last request holds; 0 where it was refused."""
        return self.seen.facts.get(turns, 0) / self.facts

    def kept_on_average(self, turns: int) -> float:
        """Over the turns that come after all facts were told."""
        return fmean(self.seen.facts.get(turn, 0) / self.facts for turn in range(3, turns + 1))


def hold_all(cases: Sequence[Case], start: Starts) -> list[SessionOutcome]:
    with serving() as server, start(server.url, WINDOW) as gateway:
        return [hold(case, gateway, server.begin(case)) for case in cases]


def hold(case: Case, gateway: Gateway, seen: Seen) -> SessionOutcome:
    """The client: ask, read the stream, resend everything."""
    turns, refused, started = len(case.messages) // 2, list[int](), time.perf_counter()
    for turn in range(1, turns + 1):
        if ask(gateway, case, turn) != case.messages[asked(turn) + 1]["content"]:
            refused.append(turn)
    seconds = time.perf_counter() - started
    return SessionOutcome(
        answered=turns - len(refused),
        first_refused=refused[0] if refused else 0,
        seconds=seconds,
        seen=seen,
        facts=len(case.needed),
    )


def ask(gateway: Gateway, case: Case, turn: int) -> str:
    """The text of the answer; after an error what came before it."""
    body = {"model": gateway.model, "stream": True, "messages": case.messages[: asked(turn) + 1]}
    said = ""
    headers = {"Authorization": f"Bearer {gateway.key}"}
    with httpx.stream("POST", f"{gateway.url}/chat/completions", json=body, headers=headers, timeout=300) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line.removeprefix("data: ")).get("choices", ()):
                    said += choice["delta"].get("content") or ""
    return said


COLUMNS = ("answered", "refused at", "facts at end", "mean", "summaries", "chars read", "tokens sent", "rewrites", "s")


def line(name: str, rows: Sequence[SessionOutcome], turns: int) -> str:
    """The mean of the sessions."""
    first = [row.first_refused for row in rows if row.first_refused]
    cells = (
        f"{fmean(row.answered for row in rows):.1f}/{turns}",
        f"{fmean(first):.0f}" if first else "never",
        f"{fmean(row.kept(turns) for row in rows):.0%}",
        f"{fmean(row.kept_on_average(turns) for row in rows):.0%}",
        f"{fmean(row.seen.summaries for row in rows):.1f}",
        f"{fmean(row.seen.summary_chars for row in rows):,.0f}",
        f"{fmean(row.seen.tokens for row in rows):,.0f}",
        f"{fmean(row.seen.rewrites for row in rows):.1f}",
        f"{fmean(row.seconds for row in rows):.1f}",
    )
    return f"{name:18}" + "".join(f"{cell:>13}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="install the peer first")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", nargs="+", choices=sorted(WAYS), default=list(WAYS))
    wanted = parser.parse_args()
    if wanted.install:
        install()
    cases = [session(seed, turns=wanted.turns) for seed in wanted.seeds]
    print(f"{len(cases)} sessions of {wanted.turns} turns, a window of {WINDOW:,} tokens; means of a session")
    print(" " * 18 + "".join(f"{column:>13}" for column in COLUMNS))
    for name in wanted.only:
        if name != "direct" and not installed(name):
            print(f"{name:18} not installed (see --install)")
            continue
        print(line(name, hold_all(cases, WAYS[name]), wanted.turns), flush=True)


if __name__ == "__main__":
    main()
