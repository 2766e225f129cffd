"""`/mcp` as the web process mounts it: the SDK's client with a key, and everything that is turned away at the door."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from dialogs.api.writes.api_keys import create_key
from dialogs.models import ApiKey, ClientConversation
from dominds.asgi import application
from tests.dialogs.mcp_server.conftest import Worked, arguments_for, text_of

pytestmark = pytest.mark.django_db(transaction=True)

URL = "http://testserver/mcp"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream"}


def http_client(secret: str = "", **headers: str) -> httpx2.AsyncClient:
    authorization = {"authorization": f"Bearer {secret}"} if secret else {}
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=application), headers={**ACCEPT, **authorization, **headers}
    )


@async_to_sync
async def send(secret: str = "", *, method: str = "POST", url: str = URL, body: Any = PING, **headers: str) -> Any:
    async with http_client(secret, **headers) as http:
        return await http.request(method, url, json=body)


@async_to_sync
async def read_everything(secret: str, *, mode: str = "auto", **arguments: Any) -> str:
    """What list_dialogs and read_dialog say to who has this key."""
    async with (
        http_client(secret) as http,
        Client(streamable_http_client(URL, http_client=http), mode=mode, cache=None) as client,
    ):
        dialogs = await client.call_tool("list_dialogs", {})
        dialog = await client.call_tool("read_dialog", arguments)
    return text_of(dialogs) + text_of(dialog)


@pytest.fixture
def secret(alice: User) -> str:
    return create_key(owner=alice, name="Laptop")[1]


@pytest.mark.parametrize("scope", ["chat", "read"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_key_of_either_scope_reads_its_owners_dialogs(alice: User, worked: Worked, mode: str, scope: str) -> None:
    key, secret = create_key(owner=alice, name="Laptop", scope=scope)

    said = read_everything(secret, mode=mode, **arguments_for("read_dialog", worked))

    assert "Pumps" in said
    assert "> Go on." in said
    key.refresh_from_db()
    assert key.last_used_at is not None


def test_a_key_that_may_only_chat_reads_nothing(alice: User) -> None:
    _key, secret = create_key(owner=alice, name="Plugin", scope=ApiKey.Scope.CHAT_ONLY)

    answer = send(secret)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "insufficient_scope")


def test_without_a_key_there_is_nothing(db: None) -> None:
    for answer in (send(), send("dk-wrong")):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "invalid_api_key"


def test_a_key_that_has_had_its_requests_is_told_when_to_come_back(alice: User) -> None:
    _key, secret = create_key(owner=alice, name="Laptop", requests_per_minute=1)

    first, second = send(secret), send(secret)

    assert (first.status_code, second.status_code) == (200, 429)
    assert 1 <= int(second.headers["retry-after"]) <= 60


def test_a_name_that_only_leads_here_is_refused(secret: str) -> None:
    """A page that has its name point at this machine would otherwise read with the browser's hands."""
    answer = send(secret, url="http://evil.example/mcp")

    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "wrong_host")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://testserver.evil.example", "http://a@b:c"])
def test_pages_of_others_are_refused(secret: str, origin: str) -> None:
    answer = send(secret, origin=origin)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong_origin")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
def test_there_are_no_sessions_to_listen_to_or_end(secret: str, method: str) -> None:
    answer = send(secret, method=method)

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "more",
    [{}, {"origin": "http://testserver:8000"}, {"url": f"{URL}/"}, {"url": f"{URL}?session=%FF"}],
    ids=["a-program", "a-page-of-our-own", "an-ending", "a-query-that-means-nothing"],
)
def test_answers_are_json_without_a_session(secret: str, more: dict[str, str]) -> None:
    answer = send(secret, **more)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert "mcp-session-id" not in answer.headers
    assert answer.json()["result"] == {}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("x" * 300_000, 413),
        (["not", "a", "request"], 400),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/destroy"}, 200),
    ],
)
def test_what_is_no_request_is_an_error(secret: str, body: Any, status: int) -> None:
    answer = send(secret, body=body)

    assert answer.status_code == status
    assert status == 413 or "error" in answer.json()


@async_to_sync
async def recalled(secret: str, arguments: dict[str, Any], **headers: str) -> str:
    async with (
        http_client(secret, **headers) as http,
        Client(streamable_http_client(URL, http_client=http), cache=None) as client,
    ):
        return text_of(await client.call_tool("recall", arguments))


def test_a_client_names_its_conversation_by_the_header_that_v1_knows_too(alice: User, worked: Worked) -> None:
    secret = create_key(owner=alice, name="Laptop")[1]
    ClientConversation.objects.create(dialog=worked.dialog, model="helper", chat="chat-7")

    by_id = recalled(secret, {"query": "answer"}, **{"x-dominds-dialog": str(worked.dialog.pk)})
    by_chat = recalled(secret, {"query": "answer"}, **{"x-openwebui-chat-id": "chat-7"})
    elsewhere = recalled(secret, {"query": "answer", "chat": "other"}, **{"x-dominds-dialog": str(worked.dialog.pk)})

    assert by_id == by_chat
    assert "> Answer 2" in by_id
    assert "no conversation that a client calls other" in elsewhere


def test_the_header_opens_nobody_elses_conversation(bob: User, worked: Worked) -> None:
    secret = create_key(owner=bob, name="Laptop")[1]

    said = recalled(secret, {"query": "answer"}, **{"x-dominds-dialog": str(worked.dialog.pk)})

    assert said == f"There is no dialog {worked.dialog.pk}. list_dialogs shows those there are."
