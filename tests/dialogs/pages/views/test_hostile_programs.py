"""Thousands of hostile requests to `/mcp` and hostile websockets, by the owner of a dialog and by others: none breaks
anything, none hangs, and nobody reads what is another's. What pages are sent is in `test_hostile.py`.
"""

from __future__ import annotations

import asyncio
import json
import time
from random import Random
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from asgiref.sync import async_to_sync
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.test import Client

from dialogs.api.writes.api_keys import create_key
from dialogs.mcp_server.server import TOOLS
from dialogs.models import Dialog, Generation, Message
from dialogs.turns.writes.messages import post_message
from dominds.asgi import application
from tests.builders import an_answer
from tests.dialogs.pages.views.test_hostile import CANARY, MOST_SECONDS, VALUES
from tests.hanging import portions

pytestmark = pytest.mark.django_db(transaction=True)

METHODS = ("tools/call",) * 8 + (
    *("resources/read", "resources/list", "resources/templates/list", "tools/list", "initialize", "ping"),
    *("completion/complete", "notifications/cancelled", "logging/setLevel", "\0", "", "x" * 5_000),
)
ODD: tuple[Any, ...] = (None, True, 0, -1, 1.5, 2**63, -(2**63), [], {}, [[[]]], {"a": {"b": None}}, *VALUES)
PROTOCOLS = ("2025-06-18", "2024-11-05", "", "x" * 300, "9999-99-99")
ORIGINS = (
    *(b"http://127.0.0.1:8000", b"http://evil.example", b"null", b"", b"http://[", b"\xff", b"http://127.0.0.1:999999"),
    None,
)
ODD_HEADERS: tuple[dict[str, str], ...] = (
    *({"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Accept": "*/*"}),
    *({"Origin": "http://["}, {"Origin": "http://testserver:999999"}, {"Host": "[" * 50}, {"Content-Type": "x"}),
)


@pytest.fixture
def told(dialog: Dialog) -> Dialog:
    post_message(dialog=dialog, content=CANARY)
    an_answer(dialog, CANARY)
    Dialog.objects.update(title=CANARY)
    return dialog


class Hostile:
    def __init__(self, dialog: Dialog, chance: Random) -> None:
        self.chance, self.dialog = chance, str(dialog.pk)
        self.numbers = [pk for table in (Message, Generation) for pk in table.objects.values_list("pk", flat=True)]

    def body(self) -> bytes:
        """A call that is well formed, but for what it says; sometimes not even that."""
        told: Any = {"jsonrpc": "2.0", "id": self.chance.choice((1, "x", 2**70, -1)), **self._asked()}
        if self.chance.random() < 0.1:
            told[self.chance.choice(("jsonrpc", "id", "method", "params"))] = self.chance.choice(ODD)
        if self.chance.random() < 0.05:
            told = self.chance.choice(([told] * 50, self.chance.choice(ODD)))
        text = json.dumps(told).encode()
        if self.chance.random() < 0.05:
            cut = text[: len(text) // 2]
            return self.chance.choice((cut, b"[" * 100_000, b"\xff" * 50, b"", b" " * 300_000, b"NaN"))
        return text

    def _asked(self) -> dict[str, Any]:
        method = self.chance.choice(METHODS)
        if method == "resources/read":
            where = self.chance.choice((self.dialog, "..", "%00", "x" * 500))
            return {"method": method, "params": {"uri": f"dominds://dialogs/{where}"}}
        if method != "tools/call":
            return {"method": method, "params": {"cursor": self.chance.choice(ODD)}}
        name = self.chance.choice((*TOOLS, "no_such_tool"))
        fields = TOOLS[name].asked.model_fields if name in TOOLS else {"x": None}
        some = [one for one in fields if one.endswith(("_id", "query")) or self.chance.random() < 0.2]
        return {"method": method, "params": {"name": name, "arguments": {one: self._value(one) for one in some}}}

    def _value(self, name: str) -> Any:
        if name == "dialog_id" and self.chance.random() < 0.9:
            return self.dialog
        if self.chance.random() < 0.5:
            return self.chance.choice(self.numbers) if name.endswith("_id") else CANARY[:10]
        return self.chance.choice(ODD)

    def headers(self, secret: str) -> dict[str, str]:
        odd = self.chance.choice(ODD_HEADERS) if self.chance.random() < 0.2 else {}
        named = {"X-Dominds-Dialog": self.chance.choice((self.dialog, "x", "0" * 300))}
        protocol = {"MCP-Protocol-Version": self.chance.choice(PROTOCOLS)} if self.chance.random() < 0.2 else {}
        known = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        return known | {"Authorization": f"Bearer {secret}"} | named | protocol | odd

    def socket(self, cookie: str) -> WebsocketCommunicator:
        """Mostly to the dialog, from the page or from somebody else's."""
        where = self.dialog if self.chance.random() < 0.9 else self.chance.choice(("0", "x" * 300, "%00", ".."))
        names = ("version", "lang", "all", "x")
        query = "&".join(f"{name}={quote(str(self.chance.choice(ODD))[:5_000])}" for name in names)
        origin = ORIGINS[0] if self.chance.random() < 0.6 else self.chance.choice(ORIGINS)
        headers = [(b"host", b"127.0.0.1:8000"), (b"cookie", cookie.encode())]
        headers += [] if origin is None else [(b"origin", origin)]
        return WebsocketCommunicator(application, f"/ws/dialogs/{where}/?{query}", headers=headers)


@pytest.mark.parametrize(("count", "seed"), portions(200, 5_000))
def test_no_call_of_mcp_breaks_hangs_or_reads_what_is_anothers(
    count: int, seed: int, alice: User, bob: User, told: Dialog, settings: Any
) -> None:
    settings.DOMINDS_API_REQUESTS_PER_MINUTE = 1_000_000
    hostile = Hostile(told, Random(seed))
    secrets = {name: create_key(owner=owner, name=name)[1] for name, owner in (("alice", alice), ("bob", bob))}
    secrets |= {"plugin": create_key(owner=alice, name="plugin", scope="chat_only")[1], "nobody": "dk-x"}
    askers = ("alice", "bob") * 5 + ("plugin", "nobody")

    async def ask(http: httpx2.AsyncClient, who: str) -> bool:
        method = hostile.chance.choice(("POST",) * 9 + ("GET", "DELETE", "PUT", "OPTIONS"))
        body, headers = hostile.body(), hostile.headers(secrets[who])
        begun = time.process_time()
        answer = await http.request(method, "http://testserver/mcp", content=body, headers=headers)
        seconds, asked = time.process_time() - begun, f"{who} {method} {body[:300]!r} {headers}"
        assert answer.status_code < 500, (answer.status_code, answer.text[:300], asked)
        assert '"code":-32603' not in answer.text.replace(" ", ""), (answer.text[:300], asked)
        assert seconds < MOST_SECONDS, (seconds, asked)
        assert who == "alice" or CANARY not in answer.text, asked
        return CANARY in answer.text

    @async_to_sync
    async def everything() -> int:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=application)) as http:
            return sum([await ask(http, askers[number % len(askers)]) for number in range(count)])

    assert everything() > 0, "Alice's program reads her dialog"


@pytest.mark.parametrize(("count", "seed"), portions(30, 2_000))
def test_no_socket_breaks_hangs_or_shows_what_is_anothers(
    count: int, seed: int, alice: User, bob: User, told: Dialog
) -> None:
    hostile = Hostile(told, Random(seed))
    cookies = [_cookie(alice), _cookie(bob), "sessionid=x; theme=\x7f", "sessionid=" + "9" * 3_000]

    async def visit(number: int) -> int:
        """Open, say something, and leave; how many frames came."""
        socket, frames = hostile.socket(cookies[number % len(cookies)]), 0
        async with asyncio.timeout(10):
            is_open, _code = await socket.connect(timeout=5)
            while is_open and not await socket.receive_nothing(timeout=0.2, interval=0.01):
                sent = await socket.receive_output(timeout=1)
                is_open = sent["type"] == "websocket.send"
                frames += is_open
                assert number % len(cookies) == 0 or CANARY not in str(sent), number
                if is_open:
                    await _say(socket, hostile.chance)
            await socket.disconnect(timeout=5)
        return frames

    @async_to_sync
    async def everything() -> list[int]:
        return [await visit(number) for number in range(count)]

    shown = everything()

    assert sum(shown[:: len(cookies)]) > 0, "Alice sees her dialog"
    assert sum(shown) == sum(shown[:: len(cookies)]), "and nobody else anything"


async def _say(socket: WebsocketCommunicator, chance: Random) -> None:
    if chance.random() < 0.5:
        await socket.send_to(text_data=str(chance.choice(ODD)) or " ")
    else:
        await socket.send_to(bytes_data=chance.choice((b"[", b"\xff" * 5_000, b"\0")))


def _cookie(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}"
