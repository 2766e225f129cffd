"""An installation of before anybody was guarded: after the update every dialog of it is."""

from __future__ import annotations

from pathlib import Path

from tests.stack import manage, settings_of

# Its rows as they were, then all migrations since, then what is in force.
UPDATED = """
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
executor = MigrationExecutor(connection)
nodes = [("dialogs", "0013_last_sent"), ("auth", "0012_alter_user_first_name_max_length")]
was = executor.migrate(nodes).apps
llm = was.get_model("dialogs", "LLM").objects.create(
    provider=was.get_model("dialogs", "Provider").objects.create(name="near", kind="openai", base_url="http://a/v1"),
    model_id="tiny", context_length=8192, context_length_source="server")
agent = was.get_model("dialogs", "Agent").objects.create(name="Keeper", slug="keeper", llm=llm)
was.get_model("dialogs", "Dialog").objects.create(
    owner=was.get_model("auth", "User").objects.create(username="alice"),
    agent=agent, llm=llm, active_at=timezone.now())
executor = MigrationExecutor(connection)
executor.migrate(executor.loader.graph.leaf_nodes())

from dialogs.llms.guard import guard_of
from dialogs.llms.words import kept_in_dialog
from dialogs.models import Dialog
dialog = Dialog.objects.get()
guard = guard_of(dialog)
print(dialog.compaction, dialog.agent.compaction, dialog.llm.compaction, guard.off, guard.config.how)
print(kept_in_dialog(dialog))
"""


def test_dialogs_of_an_earlier_version_are_compacted_by_themselves(tmp_path: Path) -> None:
    done = manage("shell", "-c", UPDATED, environment=settings_of(tmp_path))

    *_said, settings, kept = done.stdout.strip().splitlines()
    assert settings == "automatic automatic automatic False passages"
    assert kept == "window 8,192 from the server, 819 kept for the answer; compaction from ≈5,900 tokens on"
