"""Agents in the admin: the tools they are given, and where their files go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from dialogs.llms.guard import guard_of
from dialogs.models import LLM, Agent, Dialog, McpServer
from health.models import SettingsChange
from tests.dialogs.admin.conftest import told
from tests.dialogs.pages.views.forms import sent
from tests.dialogs.pages.views.pages import page

COMPACTED = {"compaction": "automatic", "when_full": "compact"}


def test_tools_are_given_to_an_agent(staff: Client, agent: Agent) -> None:
    server = McpServer.objects.create(name="lab", transport="stdio", command="lab")
    page = f"/admin/dialogs/agent/{agent.pk}/change/"
    data = {"name": "Helper", "slug": "helper", "llm": str(agent.llm_id), "enabled": "on"} | COMPACTED

    staff.post(page, data | {"workspace_enabled": "on", "mcp_servers": [str(server.pk)]})

    agent.refresh_from_db()
    assert agent.workspace_enabled
    assert list(agent.mcp_servers.all()) == [server]


def test_the_page_says_where_an_agents_files_are_and_what_goes_on_where_it_is_switched_off(
    staff: Client, agent: Agent
) -> None:
    page = staff.get(f"/admin/dialogs/agent/{agent.pk}/change/").content.decode()

    assert str(Path(settings.DOMINDS_WORKSPACES_DIR) / "helper") in page
    assert "Dialogs that have begun with it go on" in page


@pytest.mark.parametrize(("taken", "where"), [(False, "renamed"), (True, "helper")])
def test_files_go_along_with_a_new_short_name_and_never_among_anothers(
    staff: Client, agent: Agent, settings: Any, tmp_path: Path, taken: bool, where: str
) -> None:
    settings.DOMINDS_WORKSPACES_DIR = tmp_path
    (tmp_path / "helper").mkdir()
    (tmp_path / "helper" / "plan.md").write_text("The plan.")
    if taken:
        (tmp_path / "renamed").mkdir()
        (tmp_path / "renamed" / "theirs.md").write_text("Not the helper's.")

    answer = staff.post(
        f"/admin/dialogs/agent/{agent.pk}/change/",
        {"name": agent.name, "slug": "renamed", "llm": str(agent.llm_id), "enabled": "on"} | COMPACTED,
    )

    assert (tmp_path / where / "plan.md").read_text() == "The plan."
    assert any("Its files are still in" in line for line in told(answer)) == taken


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


OWN = "how: chain\nbreaking_strategy:\n  chain_order: [discard_low_rel]\n"


def save(staff: Client, agent: Agent, **fields: str) -> str:
    data = {"name": agent.name, "slug": agent.slug, "llm": str(agent.llm_id), "enabled": "on"} | COMPACTED | fields
    page = staff.post(f"/admin/dialogs/agent/{agent.pk}/change/", data).content.decode()
    agent.refresh_from_db()
    return page


def test_staff_say_what_comes_first_when_the_context_of_an_agent_fills(staff: Client, agent: Agent) -> None:
    page = staff.get(f"/admin/dialogs/agent/{agent.pk}/change/").content.decode()
    assert "the agent is asked to write down what matters" in page

    save(staff, agent, when_full="remind")

    assert agent.when_full == "remind"


def test_what_is_said_on_an_agents_page_is_not_taken_back_by_a_settings_page_that_stood_open(
    staff: Client, agent: Agent, sam: User
) -> None:
    fields = sent(page(staff, "/settings/context/"), "context-form")
    save(staff, agent, when_full="remind")

    answer = staff.post("/settings/context/", fields | {"do": ["save"], "default_limit": ["6000"]})

    agent.refresh_from_db()
    assert (answer.status_code, agent.when_full) == (409, "remind")
    noted = SettingsChange.objects.values_list("key", "before", "after", "changed_by").get()
    assert noted == ("agents.helper.when_full", "compact", "remind", sam.pk)


def test_an_agent_has_a_chain_of_its_own(staff: Client, agent: Agent) -> None:
    LLM.objects.update(context_length=8192, compaction="automatic")

    save(staff, agent, own=OWN)

    dialog = Dialog(agent=agent, llm=LLM.objects.get())
    guard = guard_of(dialog)
    assert guard is not None
    assert guard.chain == ("trim_payloads", "discard_low_rel", "select_passages")
    page = staff.get(f"/admin/dialogs/agent/{agent.pk}/change/").content.decode()
    assert "trim_payloads → discard_low_rel → select_passages" in page
    assert "chain_order:" in page

    save(staff, agent, own="")

    assert agent.own_settings == "", "everybody's again"


def test_an_agent_has_a_threshold_of_its_own_in_percent(staff: Client, agent: Agent) -> None:
    LLM.objects.update(context_length=8192, compaction="automatic")

    save(staff, agent, own="{warning_threshold: 0.6, goal: 0.5, accept: 0.6}")

    guard = guard_of(Dialog(agent=agent, llm=LLM.objects.get()))
    assert guard is not None
    assert guard.threshold == int(0.6 * guard.limit)


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ("how: best", "how: Must be one of: passages or chain."),
        ("breaking_strategy: {chain_order: [nothing]}", "There is no such strategy: nothing."),
        ("breaking_strategy: {chain_order: [hybrid]}", "It repeats what stands before it: put another strategy there."),
        ("min_limit: 5", "has no key"),
        ("warning_threshold: 0.6", "goal must be below the warning_threshold of 0.6"),
        ("how: [", "This is not YAML"),
    ],
)
def test_own_settings_that_make_no_sense_are_refused(staff: Client, agent: Agent, own: str, problem: str) -> None:
    assert problem in save(staff, agent, own=own)
    assert agent.own_settings == ""
