"""Agents in the admin: the tools they are given, and where their files go."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.test import Client

from dialogs.models import Agent, McpServer


def test_tools_are_given_to_an_agent(staff: Client, agent: Agent) -> None:
    server = McpServer.objects.create(name="lab", transport="stdio", command="lab")
    page = f"/admin/dialogs/agent/{agent.pk}/change/"
    data = {"name": "Helper", "slug": "helper", "llm": str(agent.llm_id), "enabled": "on"}

    staff.post(page, data | {"workspace_enabled": "on", "mcp_servers": [str(server.pk)]})

    agent.refresh_from_db()
    assert agent.workspace_enabled
    assert list(agent.mcp_servers.all()) == [server]


def test_the_page_says_where_an_agents_files_are(staff: Client, agent: Agent) -> None:
    page = staff.get(f"/admin/dialogs/agent/{agent.pk}/change/").content.decode()

    assert str(Path(settings.DOMINDS_WORKSPACES_DIR) / "helper") in page
