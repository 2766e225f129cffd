"""The websockets of a dialog's page and of the list, one for each tab: they send HTML fragments of what has changed.

Only the owner may connect. Actions are POST requests, never messages of the socket. A lost event is repaired at the
next poll of the dialog's version.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import SuspiciousOperation
from django.db.models import Count, Sum
from django.http import HttpRequest, QueryDict
from django.utils import translation
from redis.exceptions import RedisError

from dialogs.common.broadcast import LISTS, group_name
from dialogs.common.channel_layer import end
from dialogs.common.errors import NO_SPACE
from dialogs.common.threads import on_lent_thread as in_db
from dialogs.models import Dialog
from dialogs.pages.live_view import BatchedReads, ListDiff, PageDiff, Rendering, card_of, render_dialog, visible_version
from dialogs.pages.reads.transcript import SHOWN_ROWS
from dialogs.pages.views.lists import ListQuery, list_context
from dialogs.transcript.reads.dialogs import owned_dialog

logger = logging.getLogger(__name__)
NOT_SIGNED_IN = 4401
NOT_YOURS = 4404
TOO_LONG = 4413
LOOK_EVERY_SECONDS = 5.0
# Where nothing else was sent for so long, a comment is, which the page ignores: base.js takes a longer silence for the
# end of the socket.
SILENT_SECONDS, SIGN_OF_LIFE = 10.0, "<!---->"
# A list is read at most once in so many seconds, however much changes in it.
LIST_EVERY_SECONDS = 0.5


@BatchedReads
async def signed_in(session: tuple[type[SessionBase], str | None]) -> User | AnonymousUser:
    """The session's user; the session is read again."""
    return await in_db(_signed_in)(*session)


def _signed_in(engine: type[SessionBase], key: str | None) -> User | AnonymousUser:
    asked = cast("HttpRequest", SimpleNamespace(session=engine(key)))
    return get_user(asked)


class Watcher(AsyncWebsocketConsumer):
    """A socket that only sends: it joins a group, and also polls the database now and then, in case Redis loses events.

    Handlers run one after another, so their state needs no lock.
    """

    group: str
    language: str
    looking: asyncio.Task[None] | None = None
    sent_at = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._leave()

    async def _watch(self) -> None:
        with self._redis_away():
            await self._join()
        self.sent_at = time.monotonic()
        self.looking = asyncio.create_task(self._look())

    async def _turn_away(self, code: int) -> None:
        """Accept the socket, then close it with the code: a code can only be sent over an open socket."""
        await self.accept()
        await self.close(code)

    async def _is_signed_in(self) -> bool:
        """Is the person who connected still signed in? Session and account are read again."""
        session = self.scope["session"]
        return bool(await signed_in((session.__class__, session.session_key)) == self.scope["user"])

    async def _send(self, html: str) -> None:
        """What no websocket takes the page brings itself, when it is loaded anew."""
        if len(html) > settings.DOMINDS_SOCKET_BYTES // 4 and len(html.encode()) > settings.DOMINDS_SOCKET_BYTES:
            await self.close(TOO_LONG)
        elif html:
            self.sent_at = time.monotonic()
            await self.send(text_data=html)

    async def _join(self) -> None:
        await self.channel_layer.group_add(self.group, self.channel_name)

    async def _look(self) -> None:
        """Joins the group again each time, since Redis forgets groups when it restarts."""
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            with self._redis_away():
                if time.monotonic() - self.sent_at > SILENT_SECONDS:
                    await self._send(SIGN_OF_LIFE)
                try:
                    await self._join()
                    await self.channel_layer.send(self.channel_name, {"type": "dialog.look"})
                except RedisError as error:
                    # On a full disk Redis takes nothing, so nobody else can say so.
                    if NO_SPACE in str(error):
                        await self._tell_full()
                    raise

    async def _tell_full(self) -> None:
        """The disk is full."""

    async def _leave(self) -> None:
        """End the polling task, however the socket was closed."""
        if self.looking is not None:
            await end(self.looking)
            with self._redis_away():
                await self.channel_layer.group_discard(self.group, self.channel_name)

    @contextmanager
    def _redis_away(self) -> Iterator[None]:
        """Go on where Redis is away, full or busy: the next look makes good what was missed."""
        try:
            yield
        except Exception as error:
            logger.info("%s is not looked at just now: %s", self.group, error)


class DialogConsumer(Watcher):
    dialog_id: UUID
    limit: int | None
    screen: PageDiff

    async def connect(self) -> None:
        self.dialog_id = self.scope["url_route"]["kwargs"]["dialog_id"]
        asked = _asked_in(self.scope)
        self.language = _language(asked.get("lang", ""))
        self.limit = None if "all" in asked else SHOWN_ROWS
        self.screen = PageDiff()
        self.group = group_name(self.dialog_id)
        if refused := await self._refusal():
            await self._turn_away(refused)
            return
        await self.accept()
        await self._watch()
        await self._begin(asked.get("version", ""))

    async def dialog_changed(self, event: dict[str, Any]) -> None:
        await self._show()

    async def dialog_compaction(self, event: dict[str, Any]) -> None:
        """Send the compaction card as it is now; the run's result comes as `dialog.changed`."""
        if card := await card_of((self.dialog_id, self.language)):
            await self._send(self.screen.compaction(card))

    async def dialog_look(self, event: dict[str, Any]) -> None:
        """The poll: update if an event was lost; close the socket if the person is signed out."""
        if not await self._is_signed_in():
            await self.close(NOT_SIGNED_IN)
        elif await visible_version(self.dialog_id) != self.screen.version:
            await self._show()

    async def dialog_stream(self, event: dict[str, Any]) -> None:
        """What is recorded goes before what the event brings: where something was lost, it is read from there."""
        if event["generation"] != self.screen.generation_id:
            await self._show()
        if self._lacks_before(event):
            await self._show(whole=True)
        if event["generation"] == self.screen.generation_id and not self._lacks_before(event):
            with translation.override(self.language):
                frame = self.screen.stream(
                    text=event["text"],
                    reasoning=event["reasoning"],
                    at=event["at"],
                    thought_at=event["thought_at"],
                    size=event.get("size"),
                )
            await self._send(frame)

    async def dialog_held(self, event: dict[str, Any]) -> None:
        with translation.override(self.language):
            await self._send(self.screen.held())

    async def _tell_full(self) -> None:
        if self.screen.generation_id is not None:
            await self.dialog_held({})

    def _lacks_before(self, event: dict[str, Any]) -> bool:
        is_this = event["generation"] == self.screen.generation_id
        return is_this and self.screen.lacks(event["at"], event["thought_at"])

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
        if is_shown and await visible_version(self.dialog_id) == rendering.version:
            self.screen.has(rendering)
            # A run goes on while the version stands still: the page may be behind.
            await self._send(rendering.card if rendering.compacting else "")
        else:
            await self._send(await in_db(self.screen.whole)(rendering))

    async def _show(self, *, whole: bool = False) -> None:
        is_signed_in, rendering = await asyncio.gather(self._is_signed_in(), self._rendering())
        if not is_signed_in:
            await self.close(NOT_SIGNED_IN)
        elif rendering is not None:
            await self._send(await in_db(self.screen.whole if whole else self.screen.update)(rendering))

    async def _rendering(self) -> Rendering | None:
        """The dialog as it is; closes the socket when it is gone."""
        rendering = await render_dialog(self.dialog_id, self.language, self.limit)
        if rendering is None:
            await self.close(NOT_YOURS)
        return rendering


class ListConsumer(Watcher):
    """The socket of the first page: a person's list with the filters of its address."""

    asked: ListQuery
    screen: ListDiff
    group = LISTS
    # The versions of all the person's dialogs, as they were last looked at.
    versions: dict[str, Any]
    showing: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        query = _asked_in(self.scope)
        self.language, self.asked, self.screen = _language(query.get("lang", "")), ListQuery.of(query), ListDiff()
        if not self.scope["user"].is_authenticated:
            await self._turn_away(NOT_SIGNED_IN)
            return
        await self.accept()
        await self._watch()
        self.versions = await self._versions()
        listed = await self._listed()
        if listed["state"] == query.get("state"):
            self.screen.has(listed)
        else:
            await self._send(await in_db(self.screen.update)(listed, self.language))

    async def list_changed(self, event: dict[str, Any]) -> None:
        """One update for all changes within a moment; none for changes in other people's dialogs."""
        if self.showing is None and await self._is_mine(event["dialog"]):
            self.showing = asyncio.create_task(self._show_soon())

    async def list_show(self, event: dict[str, Any]) -> None:
        self.showing = None
        await self._show()

    async def dialog_look(self, event: dict[str, Any]) -> None:
        if not await self._is_signed_in():
            await self.close(NOT_SIGNED_IN)
        elif await self._versions() != self.versions:
            await self._show()

    async def _show_soon(self) -> None:
        await asyncio.sleep(LIST_EVERY_SECONDS)
        with self._redis_away():
            await self.channel_layer.send(self.channel_name, {"type": "list.show"})

    async def _show(self) -> None:
        # Read first: what is committed meanwhile is looked at again.
        self.versions = await self._versions()
        await self._send(await in_db(self.screen.update)(await self._listed(), self.language))

    async def _versions(self) -> dict[str, Any]:
        """The sum of the versions and the number of dialogs: it changes whenever the list would show something else."""
        owned = Dialog.objects.filter(owner=self.scope["user"])
        return await in_db(owned.aggregate)(Sum("version"), Count("pk"))

    async def _is_mine(self, dialog_id: str) -> bool:
        owned = Dialog.objects.filter(pk=dialog_id, owner=self.scope["user"])
        return dialog_id in self.screen.rows or await in_db(owned.exists)()

    async def _listed(self) -> dict[str, Any]:
        return await in_db(_listed)(self.scope["user"], self.asked, self.language)

    async def _leave(self) -> None:
        if self.showing is not None:
            await end(self.showing)
        await super()._leave()


def _listed(user: User, asked: ListQuery, language: str) -> dict[str, Any]:
    with translation.override(language):
        return list_context(user, asked)


def _asked_in(scope: Any) -> QueryDict:
    """The filters in the address; none where it is longer than any page's."""
    try:
        return QueryDict(scope["query_string"])
    except SuspiciousOperation:
        return QueryDict()


def _language(wanted: str) -> str:
    """The page's language, from the address: fragments are in the same one."""
    return wanted if wanted in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
