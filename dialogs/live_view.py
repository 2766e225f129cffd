"""A dialog rendered once a version, language and process, however many tabs watch it."""

from __future__ import annotations

import asyncio
from uuid import UUID

from channels.db import database_sync_to_async as in_db
from django.utils import translation

from dialogs.frames import Rendering, render_parts, render_rows, render_transcript
from dialogs.models import Dialog
from dialogs.selectors.dialogs import dialog_meter
from dialogs.selectors.transcript import LiveRow, transcript
from dialogs.selectors.turns import turn_status
from dialogs.views.chart import chart
from health.selectors import history

# Renderings under way, so that fifty tabs that hear of one change cause one.
_under_way: dict[tuple[UUID, str, int], asyncio.Task[Rendering | None]] = {}


def visible_version(dialog_id: UUID) -> int | None:
    return Dialog.objects.filter(pk=dialog_id).values_list("version", flat=True).first()


async def render_dialog(dialog_id: UUID, language: str) -> Rendering | None:
    """The dialog as it is now; None when it is gone. Tabs that ask for the same version share the work."""
    version = await in_db(visible_version)(dialog_id)
    if version is None:
        return None
    key = (dialog_id, language, version)
    task = _under_way.get(key)
    if task is None:
        task = _under_way[key] = asyncio.create_task(in_db(_render)(dialog_id, language))
        task.add_done_callback(lambda _done: _under_way.pop(key, None))
    # Shielded: a tab that closes must not take the others' rendering with it.
    return await asyncio.shield(task)


def _render(dialog_id: UUID, language: str) -> Rendering | None:
    dialog = Dialog.objects.select_related("agent", "llm__provider", "current_leaf").filter(pk=dialog_id).first()
    if dialog is None:
        return None
    with translation.override(language):
        shown = transcript(dialog)
        points = history(dialog_id)
        return Rendering(
            version=dialog.version,
            transcript=render_transcript(dialog, shown),
            rows=render_rows(shown.rows, dialog),
            parts=render_parts(
                dialog,
                shown,
                meter=dialog_meter(dialog),
                history=points,
                chart=chart(points),
                status=turn_status(dialog),
            ),
            live=next((row for row in shown.rows if isinstance(row, LiveRow)), None),
        )
