"""A database of very many messages: `python -m benchmarks.many [DIALOGS [MESSAGES]]`.

With `python -m tests.postgres .venv/bin/python` before it on PostgreSQL, which also tells its plans. Fills the
database by copies of one dialog, then opens pages as one of fifty people and prints, of each, its statements, the time
they took together, its slowest, and what the database reads from end to end for it.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
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

from benchmarks.filling import fill, sizes
from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.sweeper import sweep

PEOPLE = 50
# A table that has fewer rows is read from end to end because that is quickest.
MANY_ROWS = 10_000


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
        print(f"  {name:26}{len(self.asked):6}{total:10.1f}{1000 * seconds:10.1f}  {', '.join(scanned(sql, params))}")


def scanned(sql: str, params: Any) -> list[str]:
    """The large tables that the slowest statement reads from end to end, by PostgreSQL's plan."""
    if connection.vendor != "postgresql" or not sql.startswith("SELECT"):
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
        return sorted(_scans(cursor.fetchone()[0][0]["Plan"]))


def _scans(plan: dict[str, Any]) -> set[str]:
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


def main(dialogs: int = 1_000, messages: int = 1_000) -> None:
    call_command("migrate", verbosity=0)
    provider = Provider.objects.create(name="bench", kind="openai", base_url="http://127.0.0.1:9")
    llm = LLM.objects.create(provider=provider, model_id="m", context_length=100_000)
    agent = Agent.objects.create(name="Bench", slug="bench", llm=llm)
    people = [User.objects.create_user(f"person{at}") for at in range(PEOPLE)]
    begin = time.perf_counter()
    count = fill(owners=people, agent=agent, dialogs=dialogs, messages=messages)
    print(f"{connection.vendor}: {count:,} messages in {dialogs:,} dialogs, in {time.perf_counter() - begin:.0f} s")
    for name, size in list(sizes().items())[:8]:
        print(f"  {name:26}{size / 1e6:10,.0f} MB{size / count:10,.0f} bytes a message")
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(people[1])
    pages(client, Dialog.objects.filter(owner=people[1], is_client_driven=False).latest("active_at"))


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
