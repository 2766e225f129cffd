"""A pruning agent on a server of its own has decided before its decision is needed: it is not asked when it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dialogs.compacting_builders import long_text
from tests.dominds.test_survival import PASSWORD, Chat
from tests.stack import Stack, running_stack

pytestmark = pytest.mark.stack

# So long the pruning agent takes for each of the two pieces that it is shown.
SECONDS = 3.0
ROWS = """
import json
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, Provider
from dialogs.pages.writes import create_dialog
from health.models import ContextSettings
from tests.dialogs.compacting_builders import a_history, calibrate
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
pruner = Provider.objects.create(name="pruner", kind="scripted", base_url="pruner.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=100_000)
decides = LLM.objects.create(provider=pruner, model_id="large", context_length=100_000)
calibrate(llm)
agent = Agent.objects.create(name="Helper", slug="helper", llm=llm, context_limit=3500, context_budget=True)
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


def test_the_turn_whose_context_is_full_does_not_ask_it(tmp_path: Path) -> None:
    write(tmp_path / "script.json", [{"text": "Done."}])
    with running_stack(tmp_path, "--no-demo", DOMINDS_ADMIN_PASSWORD=PASSWORD) as stack:
        rows = json.loads(stack.shell(ROWS))
        decision = json.dumps({"drop": rows["oldest"], "summaries": [], "summary": "Old readings."})
        nothing = json.dumps({"drop": [], "summaries": [], "summary": ""})
        write(tmp_path / "pruner.json", [{"text": text, "delay": SECONDS} for text in (decision, nothing)])
        chat = Chat(stack, rows["dialog"])
        chat.say("What does the rotor show?")
        stack.wait_until(lambda: about(chat)["answers"] == 2, seconds=180)
        asked = times_asked(stack)

        chat.say(f"And these? {long_text(900, 16)}")
        state = chat.finish()

        assert state["messages"][-1] == "Done."
        assert about(chat)["run"] == "applied"
        assert about(chat)["changed"][0] == "prune_with_agent"
        assert times_asked(stack) == asked


def about(chat: Chat) -> dict[str, object]:
    found: dict[str, object] = json.loads(chat.stack.shell(PREPARED.format(pk=chat.dialog)))
    return found


def times_asked(stack: Stack) -> int:
    return len((stack.data_dir / "pruner.json.requests.jsonl").read_text().splitlines())


def write(path: Path, steps: list[dict[str, object]]) -> None:
    path.write_text(json.dumps({"steps": steps}))
