"""What all tabs of a process read of a dialog, read once for them: its version, its page, its card of compaction; and
from that the HTML fragments that one browser still lacks.

A PageDiff remembers what its browser shows. Every fragment replaces an element by id or adds rows at the end, so losing
the socket costs nothing: a new PageDiff starts from the whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import QuerySet, UUIDField
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.html import escape

from dialogs.common.threads import on_lent_thread as in_db
from dialogs.compaction.reads.compaction_card import compaction_card
from dialogs.context.chart import chart
from dialogs.models import Dialog
from dialogs.pages.reads.page import dialog_parts
from dialogs.pages.reads.rows import LiveRow, MessageRow, Row
from dialogs.pages.reads.transcript import Transcript
from dialogs.pages.rendering import blocks_of, made_once, render_block
from dialogs.templatetags.dialog_tags import row_of
from dialogs.transcript.reads.dialogs import shown_dialog
from dominds.prepared import prepared

PARTS = (
    "dialogs/_health_panel.html",
    "dialogs/_turn.html",
    "dialogs/_title.html",
    "dialogs/_courses.html",
    "dialogs/_earlier.html",
    "live/sidebar_item.html",
)
# Where people write in the browser, and where a client drives the dialog.
NOTEBOOK_PARTS = ("dialogs/_notebook.html", "dialogs/_notebook_count.html")
WRITTEN_PARTS = ("dialogs/_autonomous.html", "dialogs/_tour.html", *NOTEBOOK_PARTS)
CLIENT_PARTS = ("dialogs/_client_bar.html",)
Key = TypeVar("Key")
Answer = TypeVar("Answer")
# Renderings under way, so that fifty tabs that hear of one change cause one.
_under_way: dict[tuple[UUID, str, int | None, int], asyncio.Task[Rendering | None]] = {}
GATHERING_SECONDS = 0.01


class Fragment:
    """HTML that is rendered once, when the first tab needs it. That may read the database, so never on an event
    loop."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make, self._lock = make, Lock()
        self._html: str | None = None

    @property
    def html(self) -> str:
        with self._lock:
            if self._html is None:
                self._html = self._make()
        return self._html


@dataclass(frozen=True)
class RenderedRow:
    dom_id: str
    key: str
    fragment: Fragment

    @property
    def html(self) -> str:
        return self.fragment.html


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """All parts of one dialog at one version, as HTML; rows and transcript are rendered when a tab needs them."""

    version: int
    transcript: Fragment
    rows: tuple[RenderedRow, ...]
    parts: tuple[str, ...]
    live: LiveRow | None
    # The card of compaction: a part that also comes alone, for it changes while the dialog's version does not.
    card: str = ""
    compacting: bool = False


@dataclass
class PageDiff:
    """What one browser shows: rows by DOM id with their keys, parts, and the blocks of the live answer."""

    version: int = 0
    rows: dict[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    card: str = ""
    generation_id: int | None = None
    # The live answer as it is shown, its blocks, and where in it the last block begins.
    text: str = ""
    blocks: list[str] = field(default_factory=list)
    last_block: int = 0
    reasoning: str = ""
    # The hatched part of the meter, while an answer comes.
    growth: str = ""
    # Does it say that the answer waits for room in the database?
    is_held: bool = False

    def whole(self, rendering: Rendering) -> str:
        """All fragments, whatever the browser shows."""
        self.has(rendering)
        return "".join((rendering.transcript.html, *rendering.parts, rendering.card))

    def update(self, rendering: Rendering) -> str:
        """The fragments that changed since the last update; the whole transcript when rows moved."""
        new = {row.dom_id: row for row in rendering.rows}
        kept = [dom_id for dom_id in self.rows if dom_id in new]
        # Without rows the transcript is another thing: an invitation.
        if not kept or list(new)[: len(kept)] != kept:
            return self.whole(rendering)
        gone = [dom_id for dom_id in self.rows if dom_id not in new]
        changed = [row.html for row in rendering.rows if self.rows.get(row.dom_id, row.key) != row.key]
        added = [row.html for row in rendering.rows if row.dom_id not in self.rows]
        # A Taskdoc can be long, and what is replaced loses the reader's selection.
        parts = [html for html in rendering.parts if html not in self.parts]
        card = self.compaction(rendering.card)
        if "live" in gone or "live" not in self.rows or self._is_other_answer(rendering):
            self.has(rendering)
        else:
            # The live row stays as streamed: the database's copy of it lags up to a second behind.
            self._remember_rows(rendering)
        fragments = [f'<div id="{dom_id}" hx-swap-oob="delete"></div>' for dom_id in gone]
        return "".join([*fragments, *changed, _appended("rows", added), *parts, card, self._settled(rendering)])

    def has(self, rendering: Rendering) -> None:
        """Note that the browser shows all of this: it was sent, or the page had it."""
        self._remember_rows(rendering)
        generation = rendering.live.generation if rendering.live else None
        self.generation_id = generation.pk if generation else None
        self._show_text(generation.partial_text if generation else "")
        self.reasoning = generation.partial_reasoning if generation else ""

    def _remember_rows(self, rendering: Rendering) -> None:
        self.version = rendering.version
        self.rows = {row.dom_id: row.key for row in rendering.rows}
        self.parts = rendering.parts
        self.is_held = False
        self.card = rendering.card

    def _is_other_answer(self, rendering: Rendering) -> bool:
        return rendering.live is not None and rendering.live.generation.pk != self.generation_id

    def compaction(self, card: str) -> str:
        """The card of compaction, if its HTML has changed."""
        changed = card if card != self.card else ""
        self.card = card
        return changed

    def _settled(self, rendering: Rendering) -> str:
        """No answer streams any more: remove the hatched part of the meter."""
        gone = _growth((0, 0), translation.get_language()) if self.growth and rendering.live is None else ""
        self.growth = "" if gone else self.growth
        return gone

    def held(self) -> str:
        """A full database holds the answer up: said where the turn's words stand, until the parts come again."""
        is_new, self.is_held, self.parts = not self.is_held, True, ()
        return render_to_string("live/held.html") if is_new else ""

    def lacks(self, at: int, thought_at: int) -> bool:
        """Is text missing between what the browser shows and this position?"""
        return at > len(self.text) or thought_at > len(self.reasoning)

    def stream(
        self, *, text: str, reasoning: str, at: int = 0, thought_at: int = 0, size: Sequence[int] | None = None
    ) -> str:
        """The live answer's newest state: the blocks that changed, replaced; those that are new, added.

        `text` and `reasoning` are what stands from these characters on. `size`: tokens of prompt and answer, estimated,
        and the window.
        """
        shown = self.blocks
        self._show_text(self.text[:at] + text)
        blocks = self.blocks
        replaced = [_block(at, block) for at, block in enumerate(blocks[: len(shown)]) if block != shown[at]]
        added = [_block(at, block) for at, block in enumerate(blocks) if at >= len(shown)]
        gone = [f'<div id="live-block-{at}" hx-swap-oob="delete"></div>' for at in range(len(blocks), len(shown))]
        thought = self._thought(self.reasoning[:thought_at] + reasoning)
        growth = _growth(tuple(size), translation.get_language()) if size else ""
        grown = growth if growth != self.growth else ""
        self.growth = growth
        return "".join([*replaced, *gone, _appended("live-blocks", added), thought, grown])

    def _show_text(self, text: str) -> None:
        """Growing text changes only its last block, so only that is parsed again."""
        if not self.blocks or not text.startswith(self.text):
            self.blocks, self.last_block = [], 0
        tail, begins = blocks_of(text[self.last_block :])
        self.blocks = [*self.blocks[:-1], *tail]
        self.text, self.last_block = text, self.last_block + begins

    def _thought(self, reasoning: str) -> str:
        """Reasoning is plain text: only the new part is sent."""
        before, self.reasoning = self.reasoning, reasoning
        if reasoning == before:
            return ""
        if before and reasoning.startswith(before):
            return _appended("live-reasoning", [escape(reasoning[len(before) :])])
        return render_to_string("live/reasoning.html", {"reasoning": reasoning})


def _block(at: int, text: str) -> str:
    return f'<div class="block" id="live-block-{at}">{render_block(text)}</div>'


@lru_cache(maxsize=256)
def _growth(size: Sequence[int], language: str | None) -> str:
    """`language` is part of the cache's key. All tabs of a dialog get the same."""
    tokens, window = size
    share = min(1.0, tokens / window) if window else None
    return render_to_string("live/meter.html", {"growing": tokens, "growing_share": share})


def _appended(dom_id: str, html: Iterable[str]) -> str:
    inner = "".join(html)
    return f'<div hx-swap-oob="beforeend:#{dom_id}">{inner}</div>' if inner else ""


def render(parts: dict[str, Any]) -> Rendering:
    """Everything a screen may need. `parts` is the page's own context, from `selectors.page`."""
    transcript: Transcript = parts["transcript"]
    rows = tuple(RenderedRow(row.dom_id, row.key, _later(_row_html, row, parts)) for row in transcript.rows)
    driven = parts["driven"]
    more = (*CLIENT_PARTS, *(NOTEBOOK_PARTS if driven.offers_recall else ())) if driven else WRITTEN_PARTS
    return Rendering(
        version=transcript.version,
        transcript=_later(render_to_string, "dialogs/_transcript.html", {**parts, "rendered_rows": rows}),
        rows=rows,
        parts=(
            made_once("dialogs/_meter.html", meter=parts["meter"]),
            *(render_to_string(name, parts) for name in (*PARTS, *more)),
        ),
        live=next((row for row in transcript.rows if isinstance(row, LiveRow)), None),
        card=render_card(parts),
        compacting=bool(parts["card"] and parts["card"].run.is_open),
    )


def render_card(parts: dict[str, Any]) -> str:
    """The card by itself: `parts` needs `dialog` and `card` only."""
    return render_to_string("dialogs/_compaction_card.html", parts)


def _row_html(row: Row, parts: dict[str, Any]) -> str:
    if isinstance(row, MessageRow) and row.is_plain:
        return row_of(row, parts["dialog"])
    return render_to_string(f"dialogs/rows/{row.kind}.html", {**parts, "row": row})


def _later(make: Callable[..., str], *given: Any) -> Fragment:
    """Rendered later, but in the present language."""
    language = translation.get_language()

    def made() -> str:
        with translation.override(language):
            return make(*given)

    return Fragment(made)


@dataclass
class ListDiff:
    """What one browser shows of the list: the keys of its rows, in order, and the rest as one value."""

    rows: dict[str, str] = field(default_factory=dict)
    strip: str = ""
    rest: tuple[Any, ...] = ()

    def has(self, listed: dict[str, Any]) -> None:
        self.rows = {str(item.dialog.pk): item.key for item in listed["items"]}
        self.strip, self.rest = repr(listed["strip"]), (listed["more_url"], listed["asked"])

    def update(self, listed: dict[str, Any], language: str) -> str:
        """The rows that changed; the whole list where a row came, went or moved."""
        before = ListDiff(self.rows, self.strip, self.rest)
        self.has(listed)
        parts = {**listed, "is_live": True}
        with translation.override(language):
            if list(before.rows) != list(self.rows) or before.rest != self.rest:
                return render_to_string("dialogs/_list_inside.html", {**parts, "pushed": True})
            changed = [item for item in listed["items"] if before.rows[str(item.dialog.pk)] != item.key]
            counts = (
                "" if before.strip == self.strip else render_to_string("dialogs/_strip.html", {**parts, "pushed": True})
            )
            return "".join(_list_row(item, parts) for item in changed) + counts


def _list_row(item: Any, listed: dict[str, Any]) -> str:
    return render_to_string("dialogs/_list_item.html", {**listed, "item": item, "dialog": item.dialog, "pushed": True})


class BatchedReads(Generic[Key, Answer]):
    """Joins equal reads of several tabs into one, since an event reaches them almost at the same time.

    A caller gets the result of a read that began after its call.
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


@BatchedReads
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


@BatchedReads
async def card_of(watched: tuple[UUID, str]) -> str:
    """The compaction card of a dialog as it is now, in a language. It changes without the dialog's version."""
    return await in_db(_card)(*watched)


def _card(dialog_id: UUID, language: str) -> str:
    """Empty where the dialog is gone."""
    dialog = shown_dialog(dialog_id)
    if dialog is None:
        return ""
    with translation.override(language):
        return render_card({"dialog": dialog, "card": compaction_card(dialog)})
