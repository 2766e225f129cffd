"""A dozen dialogs in every state, so that each page has something to show, and the addresses of all pages.

The addresses are those of the table of addresses itself: a page that is added is found without a word here.
"""

from __future__ import annotations

import json

from docs.screenshots_dashboard import DOZEN
from tests.stack import Stack

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=32768, context_length_source="admin")
Agent.objects.create(name="Helper", slug="helper", llm=llm)
"""
# One dialog in which something stands everywhere: two courses, a compaction with its archive, a call, rules, notes.
FULL = """
from django.db import transaction
from dialogs.api.writes.api_keys import create_key
from dialogs.driver.writes.courses import start_course
from dialogs.models import Dialog, Reminder
from dialogs.transcript.writes.dialog_row import save
from dialogs.turns.writes.events import log
from dialogs.turns.writes.messages import post_message
from health.models import CleanupTask, Proposal
from tests.builders import an_answer
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.compaction_runs import a_run, a_step, an_applied_run
with transaction.atomic():
    dialog = Dialog.objects.get(title="Reading list")
    post_message(dialog=dialog, content="A rule: never write to the production database.")
    dialog.refresh_from_db()
    an_answer(dialog, "I never do.")
    start_course(dialog=dialog)
    dialog.refresh_from_db()
    a_history(dialog, pairs=8)
    save(dialog)
    gone = [one.pk for one in dialog.messages.order_by("seq") if one.content][4:9]
    steps = [a_step("trim_payloads", 4700, 4400), a_step("select_passages", 4400, 3300)]
    stays = [{"message": dialog.current_leaf.pk}]
    an_applied_run(dialog, steps=steps, removed=gone, view=stays, reward=1.2, coherence=0.9)
    Reminder.objects.create(dialog=dialog, number=1, content="Staging first.", position=1)
    for code in ("WARNING", "OVER_HIT", "PRUNER_FAILED"):
        log(code, dialog, estimated=5200, limit=5000)
    CleanupTask.objects.create(dialog=dialog, assignee=dialog.owner)
    Proposal.objects.create(kind="limit", agent=dialog.agent, llm=dialog.llm, after={"limit": 6200},
        before={"limit": 5000, "own": 5000, "is_on": True}, evidence={"findings": {"OVER_HIT": 5}, "dialogs": 4},
        expected={"over_hits": [9, 1], "compactions": [14, 6], "tokens_sent": [80000, 97000]})
    create_key(owner=dialog.owner, name="laptop")
"""
# Whatever a GET of an address answers with a whole page, for each dialog where the address is of one.
ADDRESSES = """
import json
from itertools import chain
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver
from dialogs.models import ApiKey, Dialog, Generation, Message, ToolCall
from health.models import CleanupTask, CompactionRun, Proposal
def flat(patterns, begins=""):
    for one in patterns:
        route = begins + str(one.pattern)
        yield from flat(one.url_patterns, route) if hasattr(one, "url_patterns") else [route]
visitor = Client(headers={"host": "127.0.0.1"})
visitor.force_login(User.objects.get(username="admin"))
known = {"uuid:dialog_id": [one.pk for one in Dialog.objects.order_by("title")]}
full = Dialog.objects.get(title="Reading list")
of_full = {"number:message_id": full.messages, "number:run_id": CompactionRun.objects.filter(dialog=full),
    "number:generation_id": Generation.objects.filter(dialog=full), "number:key_id": ApiKey.objects,
    "number:proposal_id": Proposal.objects, "number:task_id": CleanupTask.objects}
ids = {name: rows.order_by("pk").values_list("pk", flat=True).first() for name, rows in of_full.items()}
ids |= {"number:number": 1, "number:place": 0}
found = []
for route in flat(get_resolver().url_patterns):
    if route.startswith(("admin/", "v1/", "static/", "welcome/")):
        continue
    for name, value in ids.items():
        route = route.replace(f"<{name}>", str(value))
    dialogs = known["uuid:dialog_id"] if route == "dialogs/<uuid:dialog_id>/" else [full.pk]
    for address in dict.fromkeys(route.replace("<uuid:dialog_id>", str(pk)) for pk in dialogs):
        answer = None if "<" in address else visitor.get("/" + address)
        if answer is not None and answer.status_code == 200 and b"<html" in b"".join(answer)[:2000]:
            found.append(address)
# From here on it has a name of one long word.
Dialog.objects.filter(pk=full.pk).update(title="Reading" + "list" * 48)
print(json.dumps(found))
"""


def furnish(stack: Stack) -> list[str]:
    """Fill an empty stack; the addresses of all its pages, without the slash that they begin with."""
    stack.shell(ROWS)
    stack.shell(DOZEN)
    stack.shell(FULL)
    return list(json.loads(stack.shell(ADDRESSES).splitlines()[-1]))
