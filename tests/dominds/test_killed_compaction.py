"""The compaction worker is killed in mid-run: another takes the run up, its view is applied once, nothing is lost. And
it prepares what a pruning agent will be asked for.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.dialogs.compacting_builders import long_text
from tests.dominds.test_survival import Chat
from tests.stack import Stack

pytestmark = pytest.mark.stack

# The pruning model thinks until the worker dies. Whoever takes the run up finds it awake.
ASLEEP = [{"match": "<history>", "hang": True}, {"text": "Done."}]
AWAKE = [{"match": "<history>", "text": "no JSON at all"}, {"text": "Done."}]
ROWS = """
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, CompactionDisplay, Provider
from dialogs.pages.writes import create_dialog
from health.models import ContextSettings
from tests.dialogs.compacting_builders import a_history
PRUNE = 'context_config: {how: chain, breaking_strategy: {chain_order: [prune_with_agent, prioritize_recent]}}'
ContextSettings.objects.update_or_create(pk=1, defaults={"values": PRUNE})
provider, _ = Provider.objects.get_or_create(name="scripted", kind="scripted", base_url="script.json")
llm, _ = LLM.objects.get_or_create(provider=provider, model_id="tiny", context_length=100_000)
agent, _ = Agent.objects.get_or_create(name="Short", slug="short", llm=llm, context_limit=3500, context_budget=True)
dialog = create_dialog(owner=User.objects.get(), agent=agent)
a_history(dialog, pairs=16)
# However slow the machine: its card is still there when the test looks.
CompactionDisplay.objects.update_or_create(user=dialog.owner, defaults={"auto_hide_seconds": 3600})
print(dialog.pk)
"""
RUN = """
import json
from dialogs.models import Dialog, ViewChange
from health.models import CompactionRun
dialog = Dialog.objects.get(pk="{pk}")
run = CompactionRun.objects.filter(dialog=dialog).values("pk", "status", "phase", "claim_token").first()
changes = list(ViewChange.objects.filter(course__dialog=dialog).values_list("why", "after"))
runs, head = dialog.compaction_runs.count(), dialog.current_leaf.course.head_run_id
print(json.dumps(dict(run=run, runs=runs, changes=changes, head=head)))
"""
QUEUE = """
from django.contrib.auth.models import User
from dialogs.llms.guard import by_limit
from dialogs.models import Dialog
from dialogs.compaction.writes.compaction import queue_run
dialog = Dialog.objects.get(pk="{pk}")
queue_run(dialog, guard=by_limit(dialog), trigger="manual", requested_by=User.objects.get())
"""
# What half a minute does: the dead worker's claim is renewed no more.
LATER = """
from django.utils import timezone
from health.models import CompactionRun
CompactionRun.objects.filter(dialog="{pk}", status="running").update(claimed_until=timezone.now())
"""


@pytest.fixture
def chat(mortal: Stack) -> Chat:
    """A dialog with a history that is longer than its agent's limit."""
    write_script(mortal.data_dir, ASLEEP)
    return Chat(mortal, mortal.shell(ROWS))


def write_script(folder: Path, steps: list[dict[str, Any]], *, name: str = "script.json") -> None:
    (folder / name).write_text(json.dumps({"steps": steps}))


def about(chat: Chat) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(chat.stack.shell(RUN.format(pk=chat.dialog)))
    return found


def asked_to_prune(stack: Stack) -> int:
    log = stack.data_dir / "script.json.requests.jsonl"
    return sum("<history>" in line for line in log.read_text().splitlines()) if log.exists() else 0


def kill_in_mid_run(chat: Chat, *, asked_before: int) -> None:
    """Once the worker waits for the pruning model, with the run half done."""
    stack = chat.stack
    stack.wait_until(lambda: asked_to_prune(stack) > asked_before, seconds=180)
    assert (about(chat)["run"]["status"], about(chat)["run"]["claim_token"]) == ("running", 1)

    os.kill(stack.pid("compaction"), signal.SIGKILL)

    stack.wait_for_line("compaction was killed by SIGKILL")
    write_script(stack.data_dir, AWAKE)
    stack.shell(LATER.format(pk=chat.dialog))


def expect_one_application(chat: Chat) -> None:
    found = about(chat)
    assert found["run"] | {"pk": None} == {"pk": None, "status": "applied", "phase": "success", "claim_token": 2}
    assert found["runs"] == 1
    assert found["changes"] == [["applied", found["run"]["pk"]]]
    assert found["head"] == found["run"]["pk"]
    assert 'data-phase="success"' in chat.page()


def test_a_turn_that_waited_for_it_takes_the_run_up_and_answers_all_that_was_typed(chat: Chat) -> None:
    before, asked = chat.state()["messages"], asked_to_prune(chat.stack)
    chat.say("What does the rotor show?")
    kill_in_mid_run(chat, asked_before=asked)
    chat.say("And the valve?")

    state = chat.finish()

    assert state["messages"] == [*before, "What does the rotor show?", "Done.", "And the valve?", "Done."]
    expect_one_application(chat)


def test_a_run_that_no_turn_waits_for_is_taken_up_by_the_sweep(chat: Chat) -> None:
    before, asked = chat.state()["messages"], asked_to_prune(chat.stack)
    chat.stack.shell(QUEUE.format(pk=chat.dialog))

    kill_in_mid_run(chat, asked_before=asked)

    chat.stack.wait_until(lambda: about(chat)["run"]["status"] != "running", seconds=180)
    assert chat.state()["messages"] == before
    expect_one_application(chat)


# --- A pruning agent that has decided before its decision is needed -----------------------------
# It is asked on a server of its own, for each of the two pieces that it is shown.
A_PRUNER = """
import json
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, Provider
from dialogs.pages.writes import create_dialog
from health.models import ContextSettings
from tests.dialogs.compacting_builders import a_history, calibrate
provider, _ = Provider.objects.get_or_create(name="scripted", kind="scripted", base_url="script.json")
pruner = Provider.objects.create(name="pruner", kind="scripted", base_url="pruner.json")
llm = LLM.objects.create(provider=provider, model_id="calibrated", context_length=100_000)
decides = LLM.objects.create(provider=pruner, model_id="large", context_length=100_000)
calibrate(llm)
agent = Agent.objects.create(name="Prepares", slug="prepares", llm=llm, context_limit=3500, context_budget=True)
chosen = Agent.objects.create(name="Pruner", slug="pruner", llm=decides)
PRUNE = "context_config: {how: chain, breaking_strategy: {chain_order: [prune_with_agent, prioritize_recent]}}"
ContextSettings.objects.update_or_create(pk=1, defaults={"values": PRUNE, "pruning_agent": chosen})
dialog = create_dialog(owner=User.objects.get(), agent=agent)
said = a_history(dialog, pairs=14)
print(json.dumps({"dialog": str(dialog.pk), "oldest": [str(one.pk) for one in said[2:18]]}))
"""
PREPARED = """
import json
from health.models import CompactionRun, PreparedPruning
row = PreparedPruning.objects.filter(dialog="{pk}").first()
run = CompactionRun.objects.filter(dialog="{pk}").first()
changed = [step["phase"] for step in run.steps if step["changed"]] if run else []
print(json.dumps(dict(answers=len(row.answers) if row else 0, run=run and run.status, changed=changed)))
"""


def test_the_turn_whose_context_is_full_does_not_ask_it(mortal: Stack) -> None:
    """The last of these: its pruning agent is everybody's."""
    stack = mortal
    write_script(stack.data_dir, [{"text": "Done."}])
    rows = json.loads(stack.shell(A_PRUNER))
    decision = json.dumps({"drop": rows["oldest"], "summaries": [], "summary": "Old readings."})
    nothing = json.dumps({"drop": [], "summaries": [], "summary": ""})
    write_script(stack.data_dir, [{"text": text} for text in (decision, nothing)], name="pruner.json")
    chat = Chat(stack, rows["dialog"])
    chat.say("What does the rotor show?")
    stack.wait_until(lambda: prepared_for(chat)["answers"] == 2, seconds=180)
    asked = times_asked(stack)

    chat.say(f"And these? {long_text(900, 16)}")
    state = chat.finish()

    assert state["messages"][-1] == "Done."
    assert prepared_for(chat)["run"] == "applied"
    assert prepared_for(chat)["changed"][0] == "prune_with_agent"
    assert times_asked(stack) == asked


def prepared_for(chat: Chat) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(chat.stack.shell(PREPARED.format(pk=chat.dialog)))
    return found


def times_asked(stack: Stack) -> int:
    return len((stack.data_dir / "pruner.json.requests.jsonl").read_text().splitlines())
