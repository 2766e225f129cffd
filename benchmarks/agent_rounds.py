"""Agents that others wrote, over so many rounds of tools through Dominds: `python -m benchmarks.agent_rounds`.

LangGraph's agent and the AI SDK's loop read a document part by part, each through `/v1`, which nothing is configured
for; the model server behind has a window of 8,192 tokens and plans one call after the other. Each part must be read
once and in order, and the task and its rules must stand in every request. Exits with 1 where that does not hold.
`--install` makes the agents' environments first, in var/bench-agents and beside the tests of the clients.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.aider_session import FACTS, a_key
from tests.clients.node_clients import FOLDER
from tests.overflow.talk import missing, prose
from tests.stack import running_stack
from tests.standins.compatible import CompatibleStandin, Lists, Reply, Seen, text_of
from tests.standins.serving import serving

PLACE = Path(os.environ.get("DOMINDS_BENCH_AGENTS") or Path(__file__).parent.parent / "var" / "bench-agents")
PINNED = ("langgraph==1.2.24", "langchain==1.5.2", "langchain-openai==1.7.4")
COMMANDS = {
    "LangGraph": [str(PLACE / "bin" / "python"), str(Path(__file__).parent / "langgraph_agent.py")],
    "AI SDK": ["node", str(FOLDER / "ai_sdk_rounds.mjs")],
}
WINDOW, PART_CHARS = 8_192, 900
RUN_SECONDS = 1_200
STATED = (
    "The goal: say for project Heron which parts of the document speak of the north pier.",
    "Never read a part twice.",
    "Always name parts by their number.",
)
DONE = "Every part is read."
_PART = re.compile(r"\APart (\d{1,5}) of (\d{1,5})\.")


def install() -> None:
    venv.create(PLACE, with_pip=True)
    subprocess.run([str(PLACE / "bin" / "python"), "-m", "pip", "install", "--quiet", *PINNED], check=True)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=FOLDER, check=True)


def planned(body: Mapping[str, Any]) -> Reply:
    """A call for the next part; after the last one the final answer."""
    found = _PART.match(text_of(body["messages"][-1]))
    last, of = (int(found[1]), int(found[2])) if found else (0, 1)
    return Reply(text=DONE) if last == of else Reply(calls=[("read_part", {"part": last + 1})])


@dataclass(frozen=True, kw_only=True)
class Run:
    """What an agent read, its final answer, and what the server and Dominds recorded."""

    read: list[int]
    text: str
    dialogs: int
    compacted_at: list[float]
    seen: list[Seen]

    def faults(self, rounds: int) -> Iterator[str]:
        if self.read != list(range(1, rounds + 1)):
            yield f"{len(self.read)} parts were read of {rounds}, or in another order: {self.read[-5:]}"
        if DONE not in self.text:
            yield f"it ended with: {self.text[:200]}"
        if troubled := [one.why for one in self.seen if one.why]:
            yield f"{len(troubled)} requests were refused, the first: {troubled[0]}"
        if without := [at for at, one in enumerate(self.seen, 1) if missing(one, STATED)]:
            yield f"task or rules are missing in {len(without)} of {len(self.seen)} requests: {without[:9]}"
        if self.dialogs != 1:
            yield f"{self.dialogs} dialogs for one run"


def run(command: Sequence[str], rounds: int) -> Run:
    standin = CompatibleStandin(window=WINDOW, lists=Lists.MODELS, reply=planned)
    parts = [f"Part {at} of {rounds}. {prose(at, PART_CHARS)}" for at in range(1, rounds + 1)]
    with tempfile.TemporaryDirectory() as data, running_stack(Path(data) / "data", "--no-demo", wait=False) as stack:
        stack.wait_until(stack.answers, seconds=180)
        with serving(standin.app()) as upstream:
            wish = {"url": f"{stack.url}/v1", "key": a_key(stack, upstream), "model": "house/house-13b"}
            given = json.dumps({**wish, "task": " ".join(STATED), "parts": parts})
            ran = subprocess.run(
                command, input=given, text=True, check=True, stdout=subprocess.PIPE, timeout=RUN_SECONDS
            )
        facts = json.loads(stack.shell(FACTS).splitlines()[-1])
    return Run(**json.loads(ran.stdout), seen=standin.seen, **facts)


def held(name: str, rounds: int) -> bool:
    began = time.monotonic()
    done = run(COMMANDS[name], rounds)
    faults = list(done.faults(rounds))
    print(f"{name}: {len(done.read)} rounds of tools, {done.dialogs} dialog, {len(done.compacted_at)} compactions")
    largest, took = max(one.size for one in done.seen), time.monotonic() - began
    print(f"  largest request {largest:,} of {WINDOW:,} tokens; {took:.0f} s")
    print("\n".join(f"  {fault}" for fault in faults) or "  All of it held.", flush=True)
    return not faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="install the agents first: some 200 MB")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--only", choices=COMMANDS, help="one of the agents")
    given = parser.parse_args()
    if given.install:
        install()
    names = [given.only] if given.only else list(COMMANDS)
    done = [held(name, given.rounds) for name in names]
    sys.exit(not all(done))


if __name__ == "__main__":
    main()
