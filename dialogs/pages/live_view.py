"""What all tabs of a process read of a dialog, read once for them: its version, its page, its card of compaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar
from uuid import UUID

from channels.db import database_sync_to_async as in_db
from django.db.models import QuerySet, UUIDField
from django.utils import translation

from dialogs.compaction.reads.compaction_card import compaction_card
from dialogs.context.views.chart import chart
from dialogs.models import Dialog
from dialogs.pages.frames import Rendering, render, render_card
from dialogs.pages.reads.page import dialog_parts
from dialogs.transcript.reads.dialogs import shown_dialog
from dominds.prepared import prepared

Key = TypeVar("Key")
Answer = TypeVar("Answer")
# Renderings under way, so that fifty tabs that hear of one change cause one.
_under_way: dict[tuple[UUID, str, int | None, int], asyncio.Task[Rendering | None]] = {}
GATHERING_SECONDS = 0.01


class Gathered(Generic[Key, Answer]):
    """Read once for all tabs that ask within a moment: they hear of one event a little after one another.

    Only a reading that begins after the question answers it.
    """

    def __init__(self, read: Callable[[Key], Awaitable[Answer]]) -> None:
        self._read = read
        self._asked: dict[Key, asyncio.Task[Answer]] = {}

    async def __call__(self, key: Key) -> Answer:
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._soon(key))
        # Shielded: a tab that closes must not take the others' answer with it.
        return await asyncio.shield(self._asked[key])

    async def _soon(self, key: Key) -> Answer:
        await asyncio.sleep(GATHERING_SECONDS)
        del self._asked[key]
        return await self._read(key)


@Gathered
async def visible_version(dialog_id: UUID) -> int | None:
    return await in_db(_version)(dialog_id)


def _version(dialog_id: UUID) -> int | None:
    return next((version for (version,) in _versions(dialog_id)), None)


@prepared(UUIDField())
def _versions(dialog_id: Any) -> QuerySet[Dialog, Any]:
    return Dialog.objects.filter(pk=dialog_id).order_by().values_list("version")


async def render_dialog(dialog_id: UUID, language: str, limit: int | None) -> Rendering | None:
    """The dialog as it is now; None when it is gone. Tabs that ask for the same version share the work."""
    version = await visible_version(dialog_id)
    if version is None:
        return None
    key = (dialog_id, language, limit, version)
    task = _under_way.get(key)
    if task is None:
        task = _under_way[key] = asyncio.create_task(in_db(_render)(dialog_id, language, limit))
        task.add_done_callback(lambda _done: _under_way.pop(key, None))
    return await asyncio.shield(task)


def _render(dialog_id: UUID, language: str, limit: int | None) -> Rendering | None:
    dialog = shown_dialog(dialog_id)
    if dialog is None:
        return None
    with translation.override(language):
        parts = dialog_parts(dialog, limit=limit)
        return render(parts | {"chart": chart(parts["history"])})


@Gathered
async def card_of(watched: tuple[UUID, str]) -> str:
    """The card of a dialog as it is now, in a language. It has no version."""
    return await in_db(_card)(*watched)


def _card(dialog_id: UUID, language: str) -> str:
    """Empty where the dialog is gone."""
    dialog = shown_dialog(dialog_id)
    if dialog is None:
        return ""
    with translation.override(language):
        return render_card({"dialog": dialog, "card": compaction_card(dialog)})
