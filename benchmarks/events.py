"""How long the page of context events takes with 100,000 of them: `python -m benchmarks.events [COUNT]`.

Two hundred agents, forty people, a month. In the database that DATABASE_URL names, for which `python -m
tests.postgres` starts a PostgreSQL; else in an SQLite file that is thrown away. CPU is this process's own: on a machine
that others use too it says more than the clock.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.contrib.auth.models import User

EVENTS, AGENTS, PEOPLE, DIALOGS, ROUNDS = 100_000, 200, 40, 2_000, 40
PAGES = {
    "the newest, of one who has 2.5 %": ("few", ""),
    "the newest, of one who has half": ("many", ""),
    "one code": ("many", "?code=OVER_HIT"),
    "one agent, all time": ("few", "?agent=7&days="),
    "an older page": ("many", "?before=50000"),
}
# The page loads its counts by a request of their own.
COUNTS = {"everybody's counts": ("staff", ""), "everybody's counts, all time": ("staff", "?days=")}


def prepare() -> None:
    folder = tempfile.mkdtemp(prefix="dominds-events-")
    os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/events.sqlite3")
    os.environ |= {"DJANGO_SETTINGS_MODULE": "dominds.settings", "DOMINDS_DATA_DIR": folder}
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def fill(count: int) -> dict[str, User]:
    """People and their events. The one called many owns half of all."""
    from django.contrib.auth.models import User
    from django.utils import timezone

    from dialogs.models import LLM, Agent, Dialog, Provider
    from health.models import ContextEvent

    chance, now = random.Random(7), timezone.now()
    provider = Provider.objects.create(name="none", kind="openai", base_url="http://127.0.0.1:9/v1")
    llm = LLM.objects.create(provider=provider, model_id="small", context_length=8192)
    agents = Agent.objects.bulk_create(Agent(name=f"A {n}", slug=f"a{n}", llm=llm) for n in range(AGENTS))
    people = User.objects.bulk_create(User(username=f"p{n}", is_staff=n == 2) for n in range(PEOPLE))
    dialogs = Dialog.objects.bulk_create(
        Dialog(
            owner=people[0] if n % 2 else people[1 + n // 2 % (PEOPLE - 1)],
            agent=agents[n % AGENTS],
            llm=llm,
            active_at=now,
            title=f"Dialog {n}",
        )
        for n in range(DIALOGS)
    )
    events, month = [], timedelta(days=30)
    for at in range(count):
        dialog = chance.choice(dialogs)
        code = chance.choice(ContextEvent.Code.values)
        numbers = {"estimated": chance.randint(3_000, 9_000), "limit": 5_000}
        whose = {"owner_id": dialog.owner_id, "agent_id": dialog.agent_id}
        events.append(
            ContextEvent(
                code=code, dialog=dialog, llm=llm, happened_at=now - month * (count - at) / count, **whose, **numbers
            )
        )
    happened = ContextEvent._meta.get_field("happened_at")
    happened.auto_now_add = False  # so that it happened when we say
    ContextEvent.objects.bulk_create(events, batch_size=2_000)
    return {"many": people[0], "few": people[1], "staff": people[2]}


def measure(people: dict[str, User], url: str, pages: dict[str, tuple[str, str]]) -> None:
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    if connection.vendor == "postgresql":  # as its autovacuum does in a month
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
    print(f"{connection.vendor}: {'page':<36}{'p50 ms':>8}{'p95 ms':>8}{'p95 CPU ms':>12}{'queries':>9}")
    for name, (who, query) in pages.items():
        client = Client()
        client.force_login(people[who])
        took, worked = [], []
        for _round in range(ROUNDS):
            since, busy_since = time.perf_counter(), time.process_time()
            status = client.get(f"{url}{query}", HTTP_HOST="localhost").status_code
            took.append(1000 * (time.perf_counter() - since))
            worked.append(1000 * (time.process_time() - busy_since))
            assert status == 200, status
        with CaptureQueriesContext(connection) as queries:
            client.get(f"{url}{query}", HTTP_HOST="localhost")
        p95, busy = statistics.quantiles(took, n=20)[-1], statistics.quantiles(worked, n=20)[-1]
        print(f"  {name:<42}{statistics.median(took):>8.0f}{p95:>8.0f}{busy:>12.0f}{len(queries):>9}", flush=True)


if __name__ == "__main__":
    prepare()
    found = fill(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
    measure(found, "/events/", PAGES)
    measure(found, "/events/counts/", COUNTS)
