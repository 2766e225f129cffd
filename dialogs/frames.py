"""From the state of a dialog to the HTML fragments that one browser still lacks.

A Screen remembers what its browser shows. Every fragment replaces an element by id or adds rows at the
end, so losing the socket costs nothing: a new Screen starts from the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.template.loader import render_to_string

from dialogs.rendering import render_block, split_blocks
from dialogs.selectors.rows import LiveRow, Row
from dialogs.selectors.transcript import Transcript

PARTS = (
    "dialogs/_meter.html",
    "dialogs/_health_panel.html",
    "dialogs/_turn.html",
    "dialogs/_title.html",
    "dialogs/_courses.html",
    "dialogs/_earlier.html",
    "live/sidebar_item.html",
)
# Where people write in the browser, and where a client drives the dialog.
WRITTEN_PARTS = ("dialogs/_autonomous.html", "dialogs/_notebook.html", "dialogs/_notebook_count.html")
CLIENT_PARTS = ("dialogs/_client_bar.html",)


@dataclass(frozen=True)
class RenderedRow:
    dom_id: str
    key: str
    html: str


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """All parts of one dialog at one version, as HTML."""

    version: int
    transcript: str
    rows: tuple[RenderedRow, ...]
    parts: tuple[str, ...]
    live: LiveRow | None
    # The card of compaction: a part that also comes alone, for it changes while the dialog's version does not.
    card: str = ""
    compacting: bool = False


@dataclass
class Screen:
    """What one browser shows: rows by DOM id with their keys, parts, and the blocks of the live answer."""

    version: int = 0
    rows: dict[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    card: str = ""
    generation_id: int | None = None
    blocks: list[str] = field(default_factory=list)
    reasoning: str = ""

    def whole(self, rendering: Rendering) -> str:
        """Everything, whatever the browser shows."""
        self.has(rendering)
        return "".join((rendering.transcript, *rendering.parts, rendering.card))

    def update(self, rendering: Rendering) -> str:
        """What has changed since the last fragment; the whole transcript when rows moved."""
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
        return "".join([*fragments, *changed, _appended("rows", added), *parts, card])

    def has(self, rendering: Rendering) -> None:
        """The browser shows all of this, because it was sent or because the page brought it."""
        self._remember_rows(rendering)
        generation = rendering.live.generation if rendering.live else None
        self.generation_id = generation.pk if generation else None
        self.blocks = split_blocks(generation.partial_text) if generation else []
        self.reasoning = generation.partial_reasoning if generation else ""

    def _remember_rows(self, rendering: Rendering) -> None:
        self.version = rendering.version
        self.rows = {row.dom_id: row.key for row in rendering.rows}
        self.parts = rendering.parts
        self.card = rendering.card

    def _is_other_answer(self, rendering: Rendering) -> bool:
        return rendering.live is not None and rendering.live.generation.pk != self.generation_id

    def compaction(self, card: str) -> str:
        """The card of compaction, if it is another one."""
        changed = card if card != self.card else ""
        self.card = card
        return changed

    def stream(self, *, text: str, reasoning: str) -> str:
        """The live answer's newest state: the blocks that changed, replaced; those that are new, added."""
        blocks = split_blocks(text)
        replaced = [
            _block(at, block) for at, block in enumerate(blocks[: len(self.blocks)]) if block != self.blocks[at]
        ]
        added = [_block(at, block) for at, block in enumerate(blocks) if at >= len(self.blocks)]
        gone = [f'<div id="live-block-{at}" hx-swap-oob="delete"></div>' for at in range(len(blocks), len(self.blocks))]
        thought = (
            render_to_string("live/reasoning.html", {"reasoning": reasoning}) if reasoning != self.reasoning else ""
        )
        self.blocks, self.reasoning = blocks, reasoning
        return "".join([*replaced, *gone, _appended("live-blocks", added), thought])


def _block(at: int, text: str) -> str:
    return f'<div class="block" id="live-block-{at}">{render_block(text)}</div>'


def _appended(dom_id: str, html: Iterable[str]) -> str:
    inner = "".join(html)
    return f'<div hx-swap-oob="beforeend:#{dom_id}">{inner}</div>' if inner else ""


def render(parts: dict[str, Any]) -> Rendering:
    """Everything a screen may need. `parts` is the page's own context, from `selectors.page`."""
    transcript: Transcript = parts["transcript"]
    rows = tuple(_rendered_row(row, parts) for row in transcript.rows)
    more = CLIENT_PARTS if parts["driven"] else WRITTEN_PARTS
    return Rendering(
        version=transcript.version,
        transcript=render_to_string("dialogs/_transcript.html", {**parts, "rendered_rows": rows}),
        rows=rows,
        parts=tuple(render_to_string(name, parts) for name in (*PARTS, *more)),
        live=next((row for row in transcript.rows if isinstance(row, LiveRow)), None),
        card=render_card(parts),
        compacting=bool(parts["card"] and parts["card"].run.is_open),
    )


def render_card(parts: dict[str, Any]) -> str:
    """The card by itself: `parts` needs `dialog` and `card` only."""
    return render_to_string("dialogs/_compaction_card.html", parts)


def _rendered_row(row: Row, parts: dict[str, Any]) -> RenderedRow:
    html = render_to_string(f"dialogs/rows/{row.kind}.html", {**parts, "row": row})
    return RenderedRow(row.dom_id, row.key, html)
