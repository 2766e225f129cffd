"""Agents that only stand for an LLM that clients speak to: nobody chooses one, nobody sees one."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.api.writes.client_turns import direct_agent
from dialogs.common.errors import DialogError
from dialogs.compaction.reads.context_settings import pruning_agents
from dialogs.compaction.settings.form import SettingsForm
from dialogs.llms.reads import choosable_agents
from dialogs.llms.writes.providers import ensure_agents
from dialogs.models import LLM, Agent, Dialog
from dialogs.pages.writes import create_dialog
from dialogs.transfer import export_json, import_dialog
from tests.dialogs.pages.views.pages import page


@pytest.fixture
def direct(llm: LLM) -> Agent:
    """Even where somebody has enabled it."""
    found = direct_agent(llm)
    Agent.objects.filter(pk=found.pk).update(enabled=True)
    found.refresh_from_db()
    return found


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def test_no_dialog_begins_with_one(direct: Agent, agent: Agent, alice: User) -> None:
    assert [*choosable_agents()] == [agent]
    assert direct.name not in page(signed_in(alice), "/dialogs/new/").text

    signed_in(alice).post("/dialogs/new/", {"agent": direct.slug})

    assert not Dialog.objects.exists()


def test_none_prunes(direct: Agent, agent: Agent) -> None:
    assert list(pruning_agents(None)) == [agent]
    assert "pruning_agent" in SettingsForm({"pruning_agent": direct.slug}, is_sent=True).errors


def test_the_admin_lists_none(direct: Agent, agent: Agent, sam: User) -> None:
    found = page(signed_in(sam), "/admin/dialogs/agent/")

    assert agent.name in found.text
    assert direct.slug not in found.text
    assert signed_in(sam).get(f"/admin/dialogs/agent/{direct.pk}/change/").status_code == 302


def test_none_counts_as_somebody_to_talk_to(direct: Agent, llm: LLM) -> None:
    llm.provider.origin = "file"
    llm.provider.save()

    assert [made.llm for made in ensure_agents()] == [llm]


def test_no_imported_dialog_speaks_to_one(direct: Agent, alice: User) -> None:
    data = export_json(create_dialog(owner=alice, agent=direct))

    with pytest.raises(DialogError, match="no agent"):
        import_dialog(owner=alice, data=data)
