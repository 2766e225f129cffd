"""A dialog rendered once a version, language and process, however many tabs watch it; and its card of compaction."""

from __future__ import annotations

import asyncio
from typing import Any
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

# Renderings under way, so that fifty tabs that hear of one change cause one.
_under_way: dict[tuple[UUID, str, int | None, int], asyncio.Task[Rendering | None]] = {}
# Cards that are about to be read, for all tabs that hear of one event: they do so a little after one another.
_asked: dict[tuple[UUID, str], asyncio.Task[str]] = {}
GATHERING_SECONDS = 0.01


def visible_version(dialog_id: UUID) -> int | None:
    return next((version for (version,) in _versions(dialog_id)), None)


@prepared(UUIDField())
def _versions(dialog_id: Any) -> QuerySet[Dialog, Any]:
    return Dialog.objects.filter(pk=dialog_id).order_by().values_list("version")


async def render_dialog(dialog_id: UUID, language: str, limit: int | None) -> Rendering | None:
    """The dialog as it is now; None when it is gone. Tabs that ask for the same version share the work."""
    version = await in_db(visible_version)(dialog_id)
    if version is None:
        return None
    key = (dialog_id, language, limit, version)
    task = _under_way.get(key)
    if task is None:
        task = _under_way[key] = asyncio.create_task(in_db(_render)(dialog_id, language, limit))
        task.add_done_callback(lambda _done: _under_way.pop(key, None))
    # Shielded: a tab that closes must not take the others' rendering with it.
    return await asyncio.shield(task)


def _render(dialog_id: UUID, language: str, limit: int | None) -> Rendering | None:
    dialog = shown_dialog(dialog_id)
    if dialog is None:
        return None
    with translation.override(language):
        parts = dialog_parts(dialog, limit=limit)
        return render(parts | {"chart": chart(parts["history"])})


async def card_of(dialog_id: UUID, language: str) -> str:
    """The card as it is now. It has no version: only a reading that begins after the question answers it."""
    key = (dialog_id, language)
    task = _asked.get(key)
    if task is None:
        task = _asked[key] = asyncio.create_task(_read_card(key))
    return await asyncio.shield(task)


async def _read_card(key: tuple[UUID, str]) -> str:
    await asyncio.sleep(GATHERING_SECONDS)
    del _asked[key]
    return await in_db(_card)(*key)


def _card(dialog_id: UUID, language: str) -> str:
    """Empty where the dialog is gone."""
    dialog = shown_dialog(dialog_id)
    if dialog is None:
        return ""
    with translation.override(language):
        return render_card({"dialog": dialog, "card": compaction_card(dialog)})
