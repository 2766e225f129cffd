"""An autonomous run: what a generation costs Dominds in the first courses and in the last. The provider costs nothing.

Any two stretches of 50 generations do the same work (`tests/dialogs/driver/long_script.py`), so whatever differs
between the first and the last comes from the dialog's length. SQLite, one process, a real Valkey.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any
from uuid import uuid4

# isort: off
# In this order: the first makes a data folder and starts a Valkey, the second loads Django over them.
import tests.environment
import tests.django_loaded
# isort: on

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection

from dialogs.driver.run import drive
from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.pages.writes import create_dialog
from dialogs.turns.writes.autonomous import start_run
from tests.dialogs.driver.long_script import CYCLE, WINDOW, steps

GENERATIONS = 300


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One generation, with what leads to it: a push, a prompt, a round of calls, a new course."""

    ms: float
    cpu_ms: float
    queries: int
    rss_mb: float


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Fifty generations: means, and the memory at their end."""

    ms: float
    cpu_ms: float
    queries: float
    rss_mb: float

    @classmethod
    def of(cls, slices: Sequence[Slice]) -> Stretch:
        return cls(
            ms=fmean(each.ms for each in slices),
            cpu_ms=fmean(each.cpu_ms for each in slices),
            queries=fmean(each.queries for each in slices),
            rss_mb=slices[-1].rss_mb,
        )

    def over(self, first: Stretch) -> str:
        ms, cpu, queries = self.ms / first.ms, self.cpu_ms / first.cpu_ms, self.queries / first.queries
        return f"time x{ms:.2f}  CPU x{cpu:.2f}  queries x{queries:.2f}  memory {self.rss_mb - first.rss_mb:+.1f} MB"

    def __str__(self) -> str:
        return f"{self.ms:6.1f} ms  {self.cpu_ms:6.1f} ms CPU  {self.queries:5.1f} queries  {self.rss_mb:6.1f} MB"


class QueryCount:
    def __init__(self) -> None:
        self.queries = 0

    def __call__(self, execute: Any, *call: Any) -> Any:
        self.queries += 1
        return execute(*call)


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def new_dialog(generations: int) -> Dialog:
    name = f"{uuid4().hex}.json"
    (Path(tests.environment.data_dir) / name).write_text(json.dumps({"steps": steps(generations)}))
    provider = Provider.objects.create(name=name, kind="scripted", base_url=name)
    llm = LLM.objects.create(provider=provider, model_id="scripted", context_length=WINDOW)
    agent = Agent.objects.create(name=name, slug=name[:32], llm=llm)
    owner, _made = User.objects.get_or_create(username="bench")
    return create_dialog(owner=owner, agent=agent)


def run_on_its_own(generations: int) -> list[Slice]:
    dialog = new_dialog(generations)
    start_run(dialog=dialog, goal="Build the thing", max_generations=generations)
    counted = QueryCount()

    async def slices() -> list[Slice]:
        made = []
        while (await Dialog.objects.aget(pk=dialog.pk)).is_busy:
            queries, started, cpu = counted.queries, time.perf_counter(), time.process_time()
            await drive(dialog.pk)
            ms, cpu_ms = (time.perf_counter() - started) * 1000, (time.process_time() - cpu) * 1000
            made.append(Slice(ms=ms, cpu_ms=cpu_ms, queries=counted.queries - queries, rss_mb=rss_mb()))
        return made

    with connection.execute_wrapper(counted):
        return async_to_sync(slices)()


def main(generations: int = GENERATIONS) -> None:
    call_command("migrate", verbosity=0)
    run_on_its_own(CYCLE)  # Imports, templates and connections: not what is asked.
    slices = run_on_its_own(generations)
    first, last = Stretch.of(slices[:CYCLE]), Stretch.of(slices[generations - CYCLE : generations])
    print(f"{generations} generations on their own, in {2 * generations // CYCLE} courses; a mean of {CYCLE} each")
    print(f"  first  {first}")
    print(f"  last   {last}   {last.over(first)}")
    print(json.dumps({"first": vars(first), "last": vars(last)}))


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
