"""The server through the SDK's own client, in one process: what is listed, both ages of the protocol, resources."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from mcp import Client, MCPError
from mcp.types import CallToolResult

from dialogs.mcp_server.server import TOOLS
from tests.dialogs.mcp_server.conftest import Worked, arguments_for, in_session, text_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_client_finds_eight_tools_that_only_read(alice: User) -> None:
    tools = in_session(alice, Client.list_tools).tools

    assert {tool.name for tool in tools} == {
        "list_dialogs", "read_dialog", "read_message", "search_archive", "recall",
        "list_readings", "list_compactions", "read_compaction",
    }  # fmt: skip
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
    assert all(tool.description and tool.title and tool.output_schema for tool in tools)


async def call_all(client: Client, worked: Worked) -> dict[str, CallToolResult]:
    return {name: await client.call_tool(name, arguments_for(name, worked)) for name in TOOLS}


def everything_stored() -> dict[str, list[dict[str, Any]]]:
    return {model._meta.label: list(model._default_manager.order_by("pk").values()) for model in apps.get_models()}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_answers_in_both_ages_of_the_protocol_and_changes_nothing(
    alice: User, worked: Worked, mode: str
) -> None:
    before = everything_stored()

    results = in_session(alice, lambda client: call_all(client, worked), mode=mode)

    assert not any(result.is_error for result in results.values())
    assert "Pumps" in text_of(results["list_dialogs"])
    assert everything_stored() == before


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(alice: User) -> None:
    with pytest.raises(MCPError, match="There is no tool delete_dialog"):
        in_session(alice, lambda client: client.call_tool("delete_dialog", {}))


def test_a_wrong_argument_is_an_error_that_the_model_reads(alice: User) -> None:
    result = in_session(alice, lambda client: client.call_tool("read_dialog", {"dialog_id": "the newest"}))

    assert result.is_error
    assert text_of(result).startswith("dialog_id: ")


def test_a_failure_within_says_nothing_of_its_inside(
    alice: User, worked: Worked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialogs.mcp_server.reading.latest_levels", lambda ids: 1 / 0)

    result = in_session(alice, lambda client: client.call_tool("list_dialogs", {}))

    assert result.is_error
    assert "Dominds failed" in text_of(result)
    assert "division" not in text_of(result)


def test_a_dialog_can_be_attached_as_a_resource(alice: User, worked: Worked) -> None:
    (resource,) = in_session(alice, Client.list_resources).resources
    (content,) = in_session(alice, lambda client: client.read_resource(resource.uri)).contents

    assert (resource.uri, resource.name) == (f"dominds://dialogs/{worked.dialog.pk}", "Pumps")
    assert "Go on." in getattr(content, "text", "")


def test_bob_cannot_attach_alices_dialog(bob: User, worked: Worked) -> None:
    assert in_session(bob, Client.list_resources).resources == []
    with pytest.raises(MCPError, match="There is no dialog"):
        in_session(bob, lambda client: client.read_resource(f"dominds://dialogs/{worked.dialog.pk}"))


@pytest.mark.parametrize("uri", ["dominds://dialogs/", "dominds://dialogs/x", "file:///etc/passwd"])
def test_a_resource_that_is_not_there_is_an_error(alice: User, uri: str) -> None:
    with pytest.raises(MCPError, match="There is no resource"):
        in_session(alice, lambda client: client.read_resource(uri))


@pytest.mark.parametrize("cursor", ["next", "x" * 200])
def test_a_cursor_that_leads_nowhere_is_an_error(alice: User, cursor: str) -> None:
    with pytest.raises(MCPError, match="cursor: it leads nowhere"):
        in_session(alice, lambda client: client.list_resources(cursor=cursor))
