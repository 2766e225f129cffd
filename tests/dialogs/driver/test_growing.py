"""While an answer comes: whoever looks on is told how far prompt and answer fill the window, estimated."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from channels.layers import get_channel_layer

from dialogs.common.broadcast import group_name
from dialogs.models import Dialog
from tests.dialogs.driver.conftest import Play, ask, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
PIECES = ["The boiler in the cellar holds its pressure. "] * 20
ANSWER = "".join(PIECES)


def states_seen(dialog: Dialog) -> list[dict[str, Any]]:
    """Drive the dialog with a browser that watches it; the first states that it was sent of the answer."""
    seen: list[dict[str, Any]] = []
    layer = get_channel_layer()
    assert layer is not None

    async def watch() -> None:
        channel = await layer.new_channel()
        await layer.group_add(group_name(dialog.pk), channel)
        while len(seen) < 6:
            event = await asyncio.wait_for(layer.receive(channel), 20)
            if event["type"] == "dialog.stream":
                seen.append(event)

    drive_until_idle(dialog, beside=watch)
    return seen


def test_the_estimate_grows_with_the_answer_and_knows_the_window(dialog: Dialog, play: Play) -> None:
    play(said(10) | {"text": PIECES, "delay": 0.05})
    ask(dialog)

    sizes = [state["size"] for state in states_seen(dialog) if "size" in state]

    assert len(sizes) >= 2
    assert sizes == sorted(sizes)
    assert sizes[-1][1] == dialog.llm.context_length
    answer_tokens = sizes[-1][0] - sizes[0][0]
    assert 0 < answer_tokens < len(ANSWER) / 2
