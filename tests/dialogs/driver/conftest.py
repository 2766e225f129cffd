"""A scripted provider behind the dialog's LLM, and the driver run to the end as a worker would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings

from dialogs.agents.tools.base import OutsideTool, Tool, schema
from dialogs.driver import run_tools
from dialogs.driver.run import drive
from dialogs.models import Dialog, Message, Provider
from dialogs.turns.writes.messages import post_message

USAGE = {"prompt_tokens": 120, "completion_tokens": 5, "total_tokens": 125}


class Play(Protocol):
    def __call__(self, *steps: dict[str, Any], continues: bool = False) -> Callable[[], list[dict[str, Any]]]: ...


@pytest.fixture
def play(provider: Provider) -> Play:
    """Give the provider a script; returns a function that reads the requests it got. `continues`: it goes on with an
    answer that ends the request."""

    def write(*steps: dict[str, Any], continues: bool = False) -> Callable[[], list[dict[str, Any]]]:
        name = f"{uuid4().hex}.json"
        path = Path(settings.DOMINDS_DATA_DIR) / name
        path.write_text(json.dumps({"steps": list(steps), "continues": continues}))
        provider.base_url = name
        provider.save()
        log = path.with_name(f"{name}.requests.jsonl")
        return lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    return write


Offer = Callable[..., None]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Offer tools that only a test has, in the driver's own registry."""

    def give(*tools: Tool) -> None:
        monkeypatch.setattr(run_tools, "tools_for", lambda _dialog: tools)

    return give


def outside(name: str, perform: Callable[..., Any], **rules: Any) -> OutsideTool:
    async def keyless(arguments: Any, _key: str) -> str:
        return await perform(arguments)

    return OutsideTool(name=name, description="", parameters=schema(), perform=keyless, **rules)


def said(prompt_tokens: int | None, text: str = "Done.", **more: Any) -> dict[str, Any]:
    """An answer whose prompt was this long; None for one without usage."""
    usage = None if prompt_tokens is None else {"prompt_tokens": prompt_tokens, "completion_tokens": 5}
    return {"text": text, "usage": usage, **more}


def a_call(name: str, arguments: str = "{}", call_id: str = "c1") -> dict[str, str]:
    return {"id": call_id, "name": name, "arguments": arguments}


def calling(prompt_tokens: int | None, name: str, arguments: str = "{}", call_id: str = "c1") -> dict[str, Any]:
    """An answer that makes one call and says nothing."""
    return said(prompt_tokens, "", tool_calls=[a_call(name, arguments, call_id)], finish="tool_calls")


def ask(dialog: Dialog, content: str = "Hello") -> Message:
    message = post_message(dialog=dialog, content=content)
    dialog.refresh_from_db()
    assert isinstance(message, Message)
    return message


def drive_until_idle(dialog: Dialog, *, beside: Callable[[], Awaitable[None]] | None = None) -> Dialog:
    """Drive slice after slice, as the queue would, with something else going on meanwhile."""

    async def slices() -> None:
        while (await Dialog.objects.aget(pk=dialog.pk)).is_busy:
            await drive(dialog.pk)

    async def everything() -> None:
        await asyncio.gather(slices(), *([beside()] if beside else []))

    async_to_sync(everything)()
    dialog.refresh_from_db()
    return dialog


def ask_and_drive(dialog: Dialog, content: str = "Hello") -> Dialog:
    """Alice's message, and all that follows until the dialog rests."""
    ask(dialog, content)
    return drive_until_idle(dialog)
