"""Agents in the admin: the tools they are given, and where their files go."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from dialogs.models import LLM, Agent, McpServer

COMPACTED = {"compaction": "automatic"}


def test_tools_are_given_to_an_agent(staff: Client, agent: Agent) -> None:
    server = McpServer.objects.create(name="lab", transport="stdio", command="lab")
    page = f"/admin/dialogs/agent/{agent.pk}/change/"
    data = {"name": "Helper", "slug": "helper", "llm": str(agent.llm_id), "enabled": "on"} | COMPACTED

    staff.post(page, data | {"workspace_enabled": "on", "mcp_servers": [str(server.pk)]})

    agent.refresh_from_db()
    assert agent.workspace_enabled
    assert list(agent.mcp_servers.all()) == [server]


def test_the_page_says_where_an_agents_files_are(staff: Client, agent: Agent) -> None:
    page = staff.get(f"/admin/dialogs/agent/{agent.pk}/change/").content.decode()

    assert str(Path(settings.DOMINDS_WORKSPACES_DIR) / "helper") in page


def test_an_agents_limit_is_shown_with_where_it_comes_from(staff: Client, agent: Agent) -> None:
    address = f"/admin/dialogs/agent/{agent.pk}/change/"
    Agent.objects.update(context_budget=True, context_limit=2000)
    LLM.objects.update(context_length=None)

    assert "3,500 (agent 2,000 → floor 3,500)" in staff.get(address).content.decode()
    Agent.objects.update(context_budget=False)
    assert "no limit" in staff.get(address).content.decode()


def test_how_an_agent_is_kept_from_overflowing_is_shown(staff: Client, agent: Agent) -> None:
    LLM.objects.update(context_length=8192, context_length_source="server", compaction="automatic")

    def kept() -> str:
        return staff.get(f"/admin/dialogs/agent/{agent.pk}/change/").content.decode()

    assert "window 8,192 from the server, 819 kept for the answer; compaction from ≈5,900 tokens on" in kept()
    Agent.objects.update(compaction="off")
    assert "compaction is off for this agent, and the server refuses what does not fit" in kept()


@pytest.mark.parametrize(("limit_type", "is_on"), [("", False), ("gpt4", False), ("local_14b", True)])
def test_a_new_agent_on_a_local_llm_has_a_limit(staff: Client, llm: LLM, limit_type: str, is_on: bool) -> None:
    LLM.objects.update(limit_type=limit_type)

    fields = {"name": "New", "slug": "new", "llm": str(llm.pk), "enabled": "on"} | COMPACTED
    staff.post("/admin/dialogs/agent/add/", fields)

    assert Agent.objects.get(slug="new").context_budget == is_on
