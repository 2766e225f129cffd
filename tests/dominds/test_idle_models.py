"""The embedding model under a real `manage.py up`: loaded as a context fills, its memory given back once it is idle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack import Stack, running_stack

pytestmark = pytest.mark.stack

ASK = """
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, Provider
from dialogs.pages.writes import create_dialog
from dialogs.turns.writes.messages import post_message
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=1000)
agent = Agent.objects.create(name="Helper", slug="helper", llm=llm)
dialog = create_dialog(owner=User.objects.get(), agent=agent)
post_message(dialog=dialog, content="Hello")
"""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """One whose model reports that its window is nearly full."""
    usage = {"prompt_tokens": 680, "completion_tokens": 20}
    with running_stack(tmp_path / "data", "--no-demo", DOMINDS_EMBEDDINGS_IDLE_SECONDS="3") as found:
        (found.data_dir / "script.json").write_text(json.dumps({"steps": [{"text": "Hi.", "usage": usage}]}))
        yield found


def has_torch(pid: int) -> bool:
    return "libtorch_cpu" in Path(f"/proc/{pid}/maps").read_text()


def test_it_is_loaded_before_the_first_compaction_and_its_worker_begins_anew_once_it_is_idle(stack: Stack) -> None:
    pid = stack.pid("compaction")
    assert not has_torch(pid)

    stack.shell(ASK)

    stack.wait_until(lambda: has_torch(pid), seconds=180)
    stack.wait_for_line("this worker begins anew without it")
    stack.wait_for_line("compaction was started again")
    assert stack.pid("compaction") != pid
    assert not has_torch(stack.pid("compaction"))
