"""What is written down about MCP servers: listings that every database takes, and secrets that nobody can read."""

from __future__ import annotations

import pytest

from dialogs.agents.reads import secrets_of
from dialogs.agents.writes import record_problem, record_tools, set_secrets
from dialogs.common.secrets import KeyUnreadable
from dialogs.models import McpServer


@pytest.fixture
def server(db: None) -> McpServer:
    return McpServer.objects.create(name="lab", transport="stdio", command="lab")


def test_a_listing_is_stored_as_every_database_takes_it(server: McpServer) -> None:
    record_tools(server=server, tools=[{"name": "a\0", "annotations": {"titles": ["\ud800"], "readOnlyHint": True}}])

    server.refresh_from_db()
    assert server.tools == [{"name": "a\u2400", "annotations": {"titles": ["\ufffd"], "readOnlyHint": True}}]
    assert server.tools_read_at is not None


def test_a_listing_ends_a_problem_and_a_problem_keeps_the_listing(server: McpServer) -> None:
    record_problem(server=server, problem="away")
    record_tools(server=server, tools=[{"name": "a"}])
    assert McpServer.objects.get().problem == ""

    record_problem(server=server, problem="away again")

    assert (McpServer.objects.get().problem, McpServer.objects.get().tools) == ("away again", [{"name": "a"}])


def test_recording_leaves_what_an_admin_writes_meanwhile(server: McpServer) -> None:
    McpServer.objects.update(command="another")

    record_tools(server=server, tools=[])

    assert McpServer.objects.get().command == "another"


def test_secrets_are_stored_encrypted_and_come_back(server: McpServer) -> None:
    set_secrets(server=server, secrets={"TOKEN": "sésame"})

    stored = McpServer.objects.get()
    assert "sésame" not in stored.secrets_encrypted
    assert "TOKEN" not in stored.secrets_encrypted
    assert secrets_of(stored) == {"TOKEN": "sésame"}


def test_no_secrets_leave_nothing_stored(server: McpServer) -> None:
    set_secrets(server=server, secrets={"TOKEN": "x"})

    set_secrets(server=server, secrets={})

    assert McpServer.objects.get().secrets_encrypted == ""
    assert secrets_of(server) == {}


def test_secrets_of_another_installation_are_not_taken_for_none(server: McpServer) -> None:
    server.secrets_encrypted = "not ours"

    with pytest.raises(KeyUnreadable):
        secrets_of(server)
