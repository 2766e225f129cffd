"""Many people at once: `python -m benchmarks.load`, and with `--postgres` on a PostgreSQL that is started for it.

People who chat in pages, clients on `/v1`, and agents on their own, on a database with dialogs of others in it; two web
processes, two workers of turns; a stand-in of a model server that streams as fast as a person reads. Reported: each
action's p50, p95 and p99, what failed, CPU, memory over time, and how the database grew. `--install` installs locust.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.gateways import ROOT, TICK, install, peers, serving
from tests.postgres import server
from tests.stack import Stack, running_stack

PASSWORD = "bench-pass-1"
# Seconds: a person or client thinks so long between two actions. The answer: chunks, and seconds between two.
THINKS = (2, 8)
CHUNKS, EVERY = 60, 0.05
PAGE_MS = 200
SAMPLE_SECONDS = 5.0
PEOPLE_S_ACTIONS = ("list", "search", "dialog", "dialog, own", "send", "insights", "events")

ROWS = """
import json
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from benchmarks.filling import fill
from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.pages.writes import create_dialog
provider = Provider.objects.create(name="bench", kind="openai", base_url="{url}", max_concurrent=None)
llm = LLM.objects.create(provider=provider, model_id="m", context_length=100_000)
agent = Agent.objects.create(name="Bench", slug="bench", llm=llm)
password = make_password("{password}")
users = User.objects.bulk_create([User(username=f"person{at}", password=password) for at in range({people})])
fill(owners=users, agent=agent, dialogs={dialogs}, messages={messages})
own = {one.username: str(create_dialog(owner=one, agent=agent).pk) for one in users}
filled = Dialog.objects.filter(title__startswith="Filled")
others = {one.username: [str(pk) for pk in filled.filter(owner=one).values_list("pk", flat=True)] for one in users}
print(json.dumps({"own": own, "dialogs": others}))
"""
AGENTS = """
from django.contrib.auth.models import User
from dialogs.models import Agent
from dialogs.pages.writes import create_dialog
from dialogs.turns.writes.autonomous import start_run
owner, agent = User.objects.get(username="person0"), Agent.objects.get(slug="bench")
for at in range({agents}):
    start_run(dialog=create_dialog(owner=owner, agent=agent), goal=f"Goal {at}", max_generations=10_000)
"""
STATE = """
import json
from benchmarks.filling import answered, sizes
print(json.dumps({"sizes": sizes(), **answered()}))
"""
PAUSED = """
from dialogs.models import AutonomousRun, Dialog
print(AutonomousRun.objects.filter(ended_at=None, dialog__paused_by="").count())
"""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One sample, so many seconds from the beginning: CPU seconds of each process so far, and its memory in MB."""

    at: float
    cpu: Mapping[str, float]
    memory: Mapping[str, float]
    # CPU seconds of what is not Dominds.
    beside: Mapping[str, float]


@dataclass
class Watched:
    """The processes of the stacks, by name."""

    stacks: Sequence[Stack]
    crowd: int = 0
    samples: list[Sample] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def look(self) -> None:
        cpu, memory = {}, {}
        for name, pid in self.processes():
            cpu[name] = cpu_seconds(pid)
            memory[name] = pss_mb(pid)
        beside = {"the crowd": cpu_seconds(self.crowd), "the whole machine": machine_seconds()}
        self.samples.append(Sample(at=time.monotonic() - self.began, cpu=cpu, memory=memory, beside=beside))

    def processes(self) -> Iterator[tuple[str, int]]:
        """With the children of each, and `up` itself."""
        for number, stack in enumerate(self.stacks, 1):
            top = {"up": stack.process.pid}
            top |= {path.stem: int(path.read_text()) for path in (stack.data_dir / "run").glob("*.pid")}
            for name, pid in top.items():
                yield f"{name} {number}", pid
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if name != "up" else []
                yield from ((f"{name} {number}, child {at}", int(child)) for at, child in enumerate(children, 1))

    def report(self) -> None:
        first, last = self.samples[0], self.samples[-1]
        seconds = last.at - first.at
        print(f"\nCPU over {seconds:.0f} s, % of a core, and memory (PSS) in MB at the beginning, the middle, the end")
        middle = self.samples[len(self.samples) // 2]
        for name in last.cpu:
            load = 100 * (last.cpu[name] - first.cpu.get(name, 0.0)) / seconds
            marks = [one.memory.get(name, 0.0) for one in (first, middle, last)]
            print(f"  {name:24}{load:8.0f}{''.join(f'{mark:9.0f}' for mark in marks)}")
        sums = [sum(one.memory.values()) for one in (first, middle, last)]
        total = 100 * (sum(last.cpu.values()) - sum(first.cpu.values())) / seconds
        print(f"  {'all of Dominds':24}{total:8.0f}{''.join(f'{mark:9.0f}' for mark in sums)}")
        for name, spent in last.beside.items():
            print(f"  {name:24}{100 * (spent - first.beside[name]) / seconds:8.0f}")


def _after_name(stat: Path) -> str:
    return stat.read_text().rpartition(")")[2]


def cpu_seconds(pid: int) -> float:
    return sum(map(int, _after_name(Path(f"/proc/{pid}/stat")).split()[11:13])) / TICK


def machine_seconds() -> float:
    """CPU seconds of all cores, of all processes."""
    user, nice, system, _idle, _waiting, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:9])
    return sum((user, nice, system, *interrupts)) / TICK


def pss_mb(pid: int) -> float:
    """A process's proportional set size in MB: shared memory is divided among those who share it."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1000
    return 0.0


@contextmanager
def two_stacks(folder: Path, asked: argparse.Namespace) -> Iterator[list[Stack]]:
    """`up` with two web processes, and a second one with workers alone on the same database and Redis."""
    common = {
        "DOMINDS_SECRET_KEY": "for-this-run-only-and-for-nothing-else-at-all",
        "DOMINDS_SCRIPTED": "no",
        "DOMINDS_LEASE_SECONDS": "30",
        "DOMINDS_SWEEP_SECONDS": "5",
        "DOMINDS_TURN_THREADS": str(asked.threads),
    }
    with ExitStack() as opened:
        one = opened.enter_context(running_stack(folder / "one", "--no-demo", DOMINDS_WEB_PROCESSES="2", **common))
        shared = {
            "DATABASE_URL": one.environment.get("DATABASE_URL") or f"sqlite:///{one.data_dir}/dominds.sqlite3",
            "REDIS_URL": (one.data_dir / "redis_url").read_text().strip(),
        }
        options = ("--worker-only", "--no-demo")
        yield [one, opened.enter_context(running_stack(folder / "two", *options, **common, **shared))]


def setup(stack: Stack, url: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Fills the database; what the crowd must know."""
    given = {name: getattr(asked, name) for name in ("people", "dialogs", "messages")}
    made = json.loads(stack.shell(_filled(ROWS, url=url, password=PASSWORD, **given)).splitlines()[-1])
    key = stack.run_manage("apikey", "create", "bench", "--user", "person0", "--quiet").stdout.strip()
    crowd = {"people": asked.people, "clients": asked.clients, "thinks": THINKS, "chunks": CHUNKS}
    return {**made, **crowd, "names": list(made["own"]), "password": PASSWORD, "key": key, "model": "bench/m"}


def _filled(code: str, **values: Any) -> str:
    for name, value in values.items():
        code = code.replace(f"{{{name}}}", str(value))
    return code


def besiege(stack: Stack, crowd: Mapping[str, Any], folder: Path, seconds: int, watched: Watched) -> None:
    """Run locust for so long. Its figures are then in the folder, as CSV."""
    users = crowd["people"] + crowd["clients"]
    command = [
        *(str(peers() / "bin" / "locust"), "--locustfile", str(ROOT / "benchmarks" / "crowd.py"), "--headless"),
        *("--host", stack.url, "--users", str(users), "--spawn-rate", str(max(1, users // 10))),
        *("--run-time", f"{seconds}s", "--stop-timeout", "20", "--csv", str(folder / "found"), "--only-summary"),
        *("--exit-code-on-error", "0", "--loglevel", "ERROR"),
    ]
    environment = {**os.environ, "DOMINDS_BENCH_CROWD": json.dumps(crowd)}
    with (folder / "locust.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        watched.crowd = process.pid
        while process.poll() is None:
            watched.look()
            time.sleep(SAMPLE_SECONDS)
    if process.returncode:
        sys.exit((folder / "locust.log").read_text()[-3000:])


def table(folder: Path) -> tuple[int, list[str]]:
    """Print what every action took; how many failed, and which of people's actions are slower than they may be.

    With a star: before everybody had signed in."""
    failed, slow = 0, []
    print(f"\n{'':24}{'count':>8}{'failed':>8}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}")
    with (folder / "found_stats.csv").open() as rows:
        for row in csv.DictReader(rows):
            name, kind = row["Name"], row["Type"]
            if name == "Aggregated":
                continue
            marks = [float(row[mark]) for mark in ("50%", "95%", "99%")]
            failed += int(row["Failure Count"])
            if name in PEOPLE_S_ACTIONS and marks[1] > PAGE_MS:
                slow.append(name)
            what = f"{kind} {name}" if kind in ("page", "/v1") else name
            print(f"  {what:22}{row['Request Count']:>8}{row['Failure Count']:>8}{''.join(f'{m:9.0f}' for m in marks)}")
    failures = (folder / "found_failures.csv").read_text().splitlines()[1:]
    print("\n".join(f"  failed: {line[:300]}" for line in failures[:10]))
    return failed, slow


def growth(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    added = after["messages"] - before["messages"]
    grown = {name: size - before["sizes"].get(name, 0) for name, size in after["sizes"].items()}
    total = sum(after["sizes"].values())
    print(f"\n{after['messages']:,} messages, {total / 1e6:,.0f} MB; {added:,} of them were added")
    print(f"database growth: {sum(grown.values()) / max(1, added):,.0f} bytes a message")
    for name, size in sorted(grown.items(), key=lambda one: -one[1])[:8]:
        print(f"  {name:28}{size / max(1, added):8,.0f}")
    print(f"generations before: {before['generations']}, after: {after['generations']}")


def measured(asked: argparse.Namespace) -> bool:
    """True if nothing failed and every action of a page is fast enough."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        url = opened.enter_context(serving("benchmarks.upstream", str(CHUNKS), str(EVERY)))
        stacks = opened.enter_context(two_stacks(folder, asked))
        crowd = setup(stacks[0], url, asked)
        stacks[0].shell(AGENTS.replace("{agents}", str(asked.agents)))
        before, watched = json.loads(stacks[0].shell(STATE)), Watched(stacks)
        besiege(stacks[0], crowd, folder, asked.seconds, watched)
        failed, slow = table(folder)
        watched.report()
        print(f"agents still at work: {stacks[0].shell(PAUSED)} of {asked.agents}")
        growth(before, json.loads(stacks[0].shell(STATE)))
        if asked.log:
            print(stacks[0].log()[-asked.log :], stacks[1].log()[-asked.log :])
    print(f"\nfailed: {failed}; slower than {PAGE_MS} ms at p95: {', '.join(slow) or 'none'}")
    return not failed and not slow


def main(*arguments: str) -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--dialogs", type=int, default=200)
    parser.add_argument("--messages", type=int, default=200, help="of each of these dialogs")
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--threads", type=int, default=64, help="answers at a time of one worker")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--install", action="store_true", help="install locust first")
    parser.add_argument("--log", type=int, default=0, help="show so many characters of the stacks' logs")
    asked = parser.parse_args(arguments)
    if asked.install:
        install()
    name, load = "PostgreSQL" if asked.postgres else "SQLite", os.getloadavg()[0]
    print(f"{name}, {os.cpu_count()} cores, load {load:.1f}; {vars(asked)}")
    with server() if asked.postgres else nullcontext("") as url, patch.dict(os.environ, {"DATABASE_URL": url}):
        return measured(asked)


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
