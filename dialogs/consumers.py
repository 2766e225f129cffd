"""Who watches a dialog: one websocket a tab, from the database and the group to HTML fragments.

Only the owner may watch. Actions come by POST, never by this socket. Whatever was missed (a lost event,
a closed socket) is made good by the next look at the dialog's version.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from asgiref.sync import ThreadSensitiveContext
from channels.db import database_sync_to_async as in_db
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User

from dialogs.broadcast import group_name
from dialogs.channel_layer import end
from dialogs.frames import Rendering, Screen
from dialogs.live_view import card_of, render_dialog, visible_version
from dialogs.models import Dialog
from dialogs.selectors.dialogs import owned_dialog
from dialogs.selectors.transcript import SHOWN_ROWS

logger = logging.getLogger(__name__)
NOT_SIGNED_IN = 4401
NOT_YOURS = 4404
TOO_LONG = 4413
LOOK_EVERY_SECONDS = 5.0


class DialogConsumer(AsyncWebsocketConsumer):
    """Handlers run one after another, so `screen` needs no lock."""

    dialog_id: UUID
    language: str
    limit: int | None
    screen: Screen
    looking: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # A database thread of its own: without it all tabs of this process would wait for one another.
        async with ThreadSensitiveContext():
            try:
                await super().__call__(scope, receive, send)
            finally:
                await self._leave()

    async def connect(self) -> None:
        self.dialog_id = self.scope["url_route"]["kwargs"]["dialog_id"]
        asked = {name: values[0] for name, values in parse_qs(self.scope["query_string"].decode("latin-1")).items()}
        self.language = _language(asked.get("lang", ""))
        self.limit = None if "all" in asked else SHOWN_ROWS
        self.screen = Screen()
        refused = await self._refusal()
        if refused:
            # Accepted first: a code can only be sent over an open socket.
            await self.accept()
            await self.close(refused)
            return
        await self.accept()
        with self._redis_away():
            await self._join()
        self.looking = asyncio.create_task(self._look())
        await self._begin(asked.get("version", ""))

    async def dialog_changed(self, event: dict[str, Any]) -> None:
        await self._show()

    async def dialog_compaction(self, event: dict[str, Any]) -> None:
        """Only the card, and as it is now: what the run made comes as `dialog.changed`."""
        if card := await card_of(self.dialog_id, self.language):
            await self._send(self.screen.compaction(card))

    async def dialog_look(self, event: dict[str, Any]) -> None:
        """From our own clock: fetch when an event was lost."""
        if await in_db(visible_version)(self.dialog_id) != self.screen.version:
            await self._show()

    async def dialog_stream(self, event: dict[str, Any]) -> None:
        if event["generation"] != self.screen.generation_id:
            await self._show()
        if event["generation"] == self.screen.generation_id:
            await self._send(self.screen.stream(text=event["text"], reasoning=event["reasoning"]))

    async def _refusal(self) -> int:
        user: User | AnonymousUser = self.scope["user"]
        if not user.is_authenticated:
            return NOT_SIGNED_IN
        try:
            await in_db(owned_dialog)(user=user, dialog_id=self.dialog_id)
        except Dialog.DoesNotExist:
            return NOT_YOURS
        return 0

    async def _begin(self, shown_version: str) -> None:
        """Send everything, unless the page has just brought it: a swap would lose selections and places.

        A rendering is read piece by piece. What is committed meanwhile may be in it under the version before, which the
        page brought without: so the version must still stand afterwards.
        """
        rendering = await self._rendering()
        if rendering is None:
            return
        is_shown = str(rendering.version) == shown_version and rendering.live is None
        if is_shown and await in_db(visible_version)(self.dialog_id) == rendering.version:
            self.screen.has(rendering)
            # A run goes on while the version stands still: the page may be behind.
            await self._send(rendering.card if rendering.compacting else "")
        else:
            await self._send(self.screen.whole(rendering))

    async def _show(self) -> None:
        rendering = await self._rendering()
        if rendering is not None:
            await self._send(self.screen.update(rendering))

    async def _rendering(self) -> Rendering | None:
        """The dialog as it is; closes the socket when it is gone."""
        rendering = await render_dialog(self.dialog_id, self.language, self.limit)
        if rendering is None:
            await self.close(NOT_YOURS)
        return rendering

    async def _send(self, html: str) -> None:
        """What no websocket takes the page brings itself, when it is loaded anew."""
        if len(html) > settings.DOMINDS_SOCKET_BYTES // 4 and len(html.encode()) > settings.DOMINDS_SOCKET_BYTES:
            await self.close(TOO_LONG)
        elif html:
            await self.send(text_data=html)

    async def _join(self) -> None:
        await self.channel_layer.group_add(group_name(self.dialog_id), self.channel_name)

    async def _look(self) -> None:
        """Look now and then, whatever Redis does. Joins anew each time: Redis forgets its groups when it restarts."""
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            with self._redis_away():
                await self._join()
                await self.channel_layer.send(self.channel_name, {"type": "dialog.look"})

    async def _leave(self) -> None:
        """However this ended: nobody looks any more."""
        if self.looking is not None:
            await end(self.looking)
            with self._redis_away():
                await self.channel_layer.group_discard(group_name(self.dialog_id), self.channel_name)

    @contextmanager
    def _redis_away(self) -> Iterator[None]:
        """It may be away, full or busy: the next look makes it good."""
        try:
            yield
        except Exception as error:
            logger.info("Dialog %s is not looked at just now: %s", self.dialog_id, error)


def _language(wanted: str) -> str:
    """The page names its language in the address, so that fragments speak the same one."""
    return wanted if wanted in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
