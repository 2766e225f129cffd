"""A database of very many messages: `python -m benchmarks.many [DIALOGS [MESSAGES]]`.

With `python -m tests.postgres .venv/bin/python` before it on PostgreSQL, which also tells its plans. Fills the
database by copies of one dialog, said in the course of a year, then opens pages as one of fifty people and prints, of
each, its statements, the time they took together, its slowest, and what the database reads from end to end for it;
the plan too where that took long. Then a client's requests, turns of a page, and the indexes.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import Any

# isort: off
# In this order: the first makes a data folder and starts a Valkey, the second loads Django over them.
import tests.environment
import tests.django_loaded  # noqa: F401
# isort: on

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from benchmarks.api_latency import TURNS
from benchmarks.filling import fill, indexes, sizes
from benchmarks.gateways import serving
from benchmarks.request_cost import asking, conversations, turns_of_pages
from dialogs.api.writes.api_keys import create_key
from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.sweeper import sweep
from dominds.asgi import application
from dominds.event_loop import new_event_loop

PEOPLE = 50
# The longest dialog; there is one.
LONG = 5_000
REQUESTS = 20
# A table with fewer rows may be scanned: that is fastest.
MANY_ROWS = 10_000
# A statement that takes at least so many seconds is printed with its plan.
SLOW = 0.1


@dataclass
class Statements:
    """What was asked of the database, each with its seconds."""

    asked: list[tuple[float, str, Any]] = field(default_factory=list)

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        begin = time.perf_counter()
        found = execute(sql, params, many, context)
        self.asked.append((time.perf_counter() - begin, sql, params))
        return found

    def report(self, name: str) -> None:
        seconds, sql, params = max(self.asked)
        total = 1000 * sum(one[0] for one in self.asked)
        can_explain = connection.vendor == "postgresql" and sql.startswith("SELECT")
        whole = _scans(explained("FORMAT JSON", sql, params)[0][0][0]["Plan"]) if can_explain else ()
        print(
            f"  {name:26}{len(self.asked):6}{total:10.1f}{1000 * seconds:10.1f}  {', '.join(sorted(whole))}", flush=True
        )
        if can_explain and seconds > SLOW:
            print("", sql, *(line for (line,) in explained("ANALYZE, BUFFERS", sql, params)), sep="\n      ")


def explained(how: str, sql: str, params: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN ({how}) {sql}", params)
        return cursor.fetchall()


def _scans(plan: dict[str, Any]) -> set[str]:
    """The large tables that are read from end to end."""
    found = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" and plan["Plan Rows"] > MANY_ROWS else set()
    return found.union(*(_scans(part) for part in plan.get("Plans", ())))


def pages(client: Client, dialog: Dialog) -> None:
    wanted = {
        "list": "/",
        "search, a frequent word": "/?q=word1",
        "search, a rare word": "/?q=word3999",
        "search, no such word": "/?q=nowhere",
        "dialog": f"/dialogs/{dialog.pk}/",
        "dialog, all of it": f"/dialogs/{dialog.pk}/?all=1",
        "search in a dialog": f"/dialogs/{dialog.pk}/archive-of-context/?q=word7",
        "insights": "/insights/",
        "insights, of all time": "/insights/?days=",
        "insights, everybody's": "/insights/?all=1",
        "its chart": "/insights/chart/?agent=1&llm=1&all=1",
        "events": "/events/",
    }
    print(f"\n  {'':26}{'SQL':>6}{'ms':>10}{'slowest':>10}  read from end to end")
    for name, path in wanted.items():
        # The first fills caches of the database, and of templates.
        for _ in range(2):
            statements = Statements()
            with connection.execute_wrapper(statements):
                answer = client.get(path)
                assert answer.status_code == 200, (path, answer.status_code)
        statements.report(name)
    statements = Statements()
    with connection.execute_wrapper(statements):
        sweep()
    statements.report("the sweeper's look")


@contextmanager
def clocked(into: list[float]) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    into.append(1000 * (time.perf_counter() - begin))


def answers(secret: str) -> None:
    """Wall time, since the statements are executed in other threads."""
    requests, turns = list[float](), list[float]()
    ask = asking(application, secret)

    async def asked(messages: Sequence[dict[str, str]]) -> bytes:
        with clocked(requests):
            return bytes(await ask(messages))

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(conversations(asked, turns=TURNS, requests=REQUESTS, around=nullcontext))
        runner.run(turns_of_pages(requests=REQUESTS, around=lambda: clocked(turns)))
    # The first brought all the turns.
    for name, taken in {f"{TURNS} turns resent": requests[1:], "a turn of a page": turns}.items():
        print(f"  {name:26}{median(taken):16.1f} ms in the median, {max(taken):.1f} at the most")


def world(upstream: str) -> tuple[Agent, list[User]]:
    provider = Provider.objects.create(name="bench", kind="openai", base_url=upstream)
    llm = LLM.objects.create(provider=provider, model_id="m", context_length=100_000)
    agent = Agent.objects.create(name="Bench", slug="bench", llm=llm)
    return agent, [User.objects.create_user(f"person{at}", is_staff=True) for at in range(PEOPLE)]


def main(dialogs: int = 1_000, messages: int = 1_000) -> None:
    call_command("migrate", verbosity=0)
    with serving("benchmarks.instant") as upstream:
        agent, people = world(upstream)
        begin = time.perf_counter()
        fill(owners=people, agent=agent, dialogs=dialogs, messages=messages)
        count = fill(owners=people[1:], agent=agent, dialogs=1, messages=LONG)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
        print(f"{connection.vendor}: {count:,} messages in {dialogs:,} dialogs, in {time.perf_counter() - begin:.0f} s")
        for name, size in list(sizes().items())[:8]:
            print(f"  {name:26}{size / 1e6:10,.0f} MB{size / count:10,.0f} bytes a message")
        client = Client(HTTP_HOST="127.0.0.1")
        client.force_login(people[1])
        pages(client, Dialog.objects.get(last_seq=LONG))
        answers(create_key(owner=people[1], name="bench")[1])
    if connection.vendor == "postgresql":
        for name, size, looked in indexes()[:16]:
            print(f"  {name:50}{size / 1e6:10,.0f} MB{looked:10,} times")


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
