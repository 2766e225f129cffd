"""MCP servers in the admin: secrets go in and never come out; addresses are checked; a button asks for the tools."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from dialogs.agents.reads import secrets_of
from dialogs.agents.writes import record_problem, record_tools
from dialogs.models import McpServer
from tests.dialogs.admin.conftest import told

TIME_SERVER = f"{sys.executable} -m mcp_server_time"
GOOD = {"name": "time", "transport": "stdio", "command": TIME_SERVER, "timeout_seconds": "30", "enabled": "on"}


def add(client: Client, **fields: str) -> Any:
    return client.post("/admin/dialogs/mcpserver/add/", GOOD | fields)


def page_of(server: McpServer) -> str:
    return f"/admin/dialogs/mcpserver/{server.pk}/change/"


def change(client: Client, **fields: str) -> Any:
    return client.post(page_of(McpServer.objects.get()), GOOD | fields)


def stored() -> dict[str, str]:
    return secrets_of(McpServer.objects.get())


@pytest.fixture
def server(db: None) -> McpServer:
    return McpServer.objects.create(name="time", transport="stdio", command=TIME_SERVER, timeout_seconds=30)


def test_a_server_is_added_with_its_secrets_which_are_named_and_never_shown(staff: Client) -> None:
    add(staff, new_secrets="TOKEN = two words=three\n\n_KEY=é\n")

    page = staff.get(page_of(McpServer.objects.get())).content.decode()

    assert stored() == {"TOKEN": "two words=three", "_KEY": "é"}
    assert '<div class="readonly">TOKEN, _KEY</div>' in page
    assert "two words" not in page
    assert McpServer.objects.get().secrets_encrypted not in page


def test_secrets_are_added_changed_and_removed_one_by_one_and_kept_by_saving_without_any(staff: Client) -> None:
    add(staff, new_secrets="A=1\nB=2\nC=3")

    change(staff, new_secrets="B=two\nC=\nD=4")

    assert stored() == {"A": "1", "B": "two", "D": "4"}

    change(staff, timeout_seconds="5")

    assert stored() == {"A": "1", "B": "two", "D": "4"}
    assert McpServer.objects.get().timeout_seconds == 5


def test_a_programs_secrets_are_not_sent_to_an_address(staff: Client) -> None:
    add(staff, new_secrets="A=1")

    change(staff, transport="http", url="https://host.test/mcp", new_secrets="Authorization=Bearer x")

    assert stored() == {"Authorization": "Bearer x"}


def test_an_addresss_headers_are_not_sent_to_another(staff: Client) -> None:
    at = {"transport": "http", "url": "https://host.test/mcp"}
    add(staff, **at, new_secrets="Authorization=Bearer x")

    change(staff, **at | {"url": "https://host.test/other"})
    kept = stored()
    response = change(staff, **at | {"url": "https://thief.test/mcp"})

    assert (kept, stored()) == ({"Authorization": "Bearer x"}, {})
    assert "The stored secrets were removed" in " ".join(told(response))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"command": ""}, "A program needs its command."),
        ({"command": "say 'hello"}, "A quotation mark is not closed."),
        ({"transport": "http"}, "An address needs its URL."),
        ({"transport": "http", "url": "ftp://host/mcp"}, "Write an address like"),
        ({"transport": "http", "url": "https://user:pass@host/mcp"}, "Write an address like"),
        ({"transport": "http", "url": "https://host:99999/mcp"}, "Write an address like"),
        ({"transport": "http", "url": "https://ho st/mcp"}, "Write an address like"),
        ({"transport": "http", "url": "https:///mcp"}, "Write an address like"),
        ({"new_secrets": "TOKEN=1\nsesame"}, "Line 2 is not NAME=value."),
        ({"new_secrets": "X-Token=1"}, "Line 1 is not NAME=value."),  # no name for a variable
        ({"transport": "http", "url": "https://host/mcp", "new_secrets": "X-Token=é"}, "Line 1 is not NAME=value."),
        ({"name": "two words"}, "slug"),
    ],
)
def test_a_wrong_field_is_told_beside_it(fields: dict[str, str], complaint: str, staff: Client) -> None:
    page = add(staff, **fields).content.decode()

    assert complaint in page
    assert not McpServer.objects.exists()


def test_the_button_saves_asks_and_shows_what_came(staff: Client, server: McpServer) -> None:
    response = change(staff, timeout_seconds="20", _ask="1")

    server.refresh_from_db()
    assert server.timeout_seconds == 20
    assert "time: 2 tools" in told(response)
    assert response["Location"] == page_of(server)
    assert "get_current_time" in staff.get(page_of(server)).content.decode()


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_the_database_while_a_server_is_asked(
    staff: Client, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_transaction: list[bool] = []
    monkeypatch.setattr(
        "dialogs.admin.mcp_server.ask", lambda _: in_transaction.append(connection.in_atomic_block) or []
    )

    change(staff, _ask="1")

    assert in_transaction == [False]


def test_the_button_asks_nobody_when_a_field_is_wrong(staff: Client, server: McpServer) -> None:
    response = change(staff, command="", _ask="1")

    assert "A program needs its command." in response.content.decode()
    assert McpServer.objects.get().tools_read_at is None


def test_the_list_asks_several_at_once_and_says_what_is_wrong(staff: Client, server: McpServer) -> None:
    gone = McpServer.objects.create(name="gone", transport="stdio", command="no-such-program")

    chosen = {"action": "ask_for_tools", "_selected_action": [str(gone.pk), str(server.pk)]}
    response = staff.post("/admin/dialogs/mcpserver/", chosen)

    assert told(response)[0].startswith("The MCP server gone cannot be started")
    assert told(response)[1] == "time: 2 tools"
    assert "The MCP server gone cannot be started" in staff.get("/admin/dialogs/mcpserver/").content.decode()


@pytest.mark.parametrize(
    ("fields", "is_another"),
    [({"command": "another"}, True), ({"new_secrets": "TOKEN=1"}, True), ({"name": "x"}, False)],
)
def test_a_changed_address_has_to_be_asked_anew(
    fields: dict[str, str], is_another: bool, staff: Client, server: McpServer
) -> None:
    record_tools(server=server, tools=[{"name": "old"}])

    change(staff, **fields)

    changed = McpServer.objects.get()
    assert (changed.tools, changed.tools_read_at is None) == ([] if is_another else [{"name": "old"}], is_another)


def test_what_a_server_says_is_text_on_the_page(staff: Client, server: McpServer) -> None:
    record_tools(server=server, tools=[{"name": "<b>bold</b>", "description": "<script>"}])
    record_problem(server=server, problem="<i>oops</i>")

    page = staff.get(page_of(server)).content.decode()

    assert "&lt;b&gt;bold" in page
    assert "&lt;i&gt;oops" in page
    assert "<b>bold" not in page
    assert "<i>oops" not in page


def test_secrets_that_cannot_be_read_any_more_can_be_written_anew(staff: Client, server: McpServer) -> None:
    McpServer.objects.update(secrets_encrypted="of another installation")

    page = staff.get(page_of(server)).content.decode()
    change(staff, new_secrets="TOKEN=1")

    assert "cannot be read any more" in page
    assert stored() == {"TOKEN": "1"}
