"""Alice's dialog as it is after some work, and the SDK's own client with the eyes of Alice or of Bob."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import jsonschema
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from mcp import Client, MCPError
from mcp.types import CallToolResult

from dialogs.common.threads import close_threads
from dialogs.mcp_server.server import TOOLS, build_server
from dialogs.models import Dialog, Message
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun
from tests.builders import a_call, a_reading
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.compaction_runs import a_step, an_applied_run

Answer = TypeVar("Answer")


@dataclass(kw_only=True)
class Worked:
    """Six questions with answers, of which two answers were compacted away; then three readings, the last unknown."""

    dialog: Dialog
    history: list[Message]
    run: CompactionRun

    @property
    def gone(self) -> list[Message]:
        return [self.history[3], self.history[5]]


@pytest.fixture
def worked(dialog: Dialog) -> Worked:
    window = dialog.llm.context_length
    history = a_history(dialog, pairs=6)
    dialog.llm.context_length = window
    dialog.llm.save()
    gone = (history[3], history[5])
    run = an_applied_run(
        dialog,
        view=[{"message": one.pk} for one in history if one not in gone]
        + [{"kind": "summary", "content": "Two answers about pumps.", "covers": [one.pk for one in gone]}],
        removed=[one.pk for one in gone],
        steps=[a_step("detection", 4500, 4500), a_step("summarize_old", 4500, 3420, note="coherence 0.91")],
        coverage=[{"message": str(one.pk), "extent": "in part", "read": 120, "total": 340} for one in gone],
        losses=[
            {"text": "/srv/reports/2031", "kind": "path", "message": str(gone[1].pk), "kept": True},
            {"text": "Answer 2", "kind": "number", "message": str(gone[1].pk), "kept": False},
        ],
        ledger=[{"text": f"Rule {number}", "kind": "binding"} for number in range(3)],
        reason="Context reduced to ≈3,420 / 5,000 tokens.",
    )
    for size in (300, 612, None):
        post_message(dialog=dialog, content="Go on.")
        a_reading(dialog, size)
    a_call(Message.objects.filter(dialog=dialog).latest("seq"), name="read_file", arguments='{"path": "a.txt"}')
    dialog.title = "Pumps"
    dialog.save()
    return Worked(dialog=dialog, history=history, run=run)


@async_to_sync
async def in_session(user: User, work: Callable[[Client], Awaitable[Answer]], **options: Any) -> Answer:
    """What `work` makes of the SDK's client, connected to our server in this process."""

    async def owner() -> User:
        return user

    async with Client(build_server(owner), cache=None, **options) as client:
        try:
            return await work(client)
        except MCPError as error:
            refused = error
    # Inside, it would arrive in a group of one.
    raise refused


def text_of(result: CallToolResult) -> str:
    return "".join(getattr(part, "text", "") for part in result.content)


def arguments_for(tool: str, worked: Worked) -> dict[str, Any]:
    """A call of this tool that finds something."""
    fields = TOOLS[tool].asked.model_fields
    known = {
        "dialog_id": str(worked.dialog.pk),
        "message_id": worked.gone[0].pk,
        "compaction_id": worked.run.pk,
        **({"query": "Answer"} if tool in {"search_archive", "recall"} else {}),
    }
    return {name: value for name, value in known.items() if name in fields}


def call(user: User, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    """Without a client between: it would need a thread, and that a database that keeps what a test writes."""
    return TOOLS[tool].call(user, arguments)


def ask(user: User, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers, as data."""
    result = call(user, tool, {name: _wire(value) for name, value in arguments.items()})
    assert not result.is_error, text_of(result)
    # As clients check it.
    jsonschema.validate(result.structured_content, TOOLS[tool].listed().output_schema)
    assert result.structured_content is not None
    return result.structured_content


def complaint(user: User, tool: str, **arguments: Any) -> str:
    """What a tool says of a call that it cannot answer."""
    result = call(user, tool, {name: _wire(value) for name, value in arguments.items()})
    assert result.is_error
    return text_of(result)


def _wire(value: Any) -> Any:
    return value if isinstance(value, int | bool | type(None)) else str(value)


@pytest.fixture(autouse=True)
def closed_threads() -> Iterator[None]:
    """Threads that keep their connections would keep the test's database."""
    yield
    close_threads()
