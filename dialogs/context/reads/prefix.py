"""How much of a request begins as the one before it did, which a prompt cache can reuse; and what Dominds' own tools
cost a dialog in each request.

Rebuilt from two manifests and measured in characters, so it is an estimate. Reads no text of any message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from django.db.models.functions import Length

from dialogs.agents.tools.registry import own_tools
from dialogs.context.estimate import offered_tools, overhead
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import guard_of
from dialogs.models import Blob, Dialog, Generation, Message
from dialogs.models.dialog import OwnTools
from dialogs.transcript.model_view import Entry, load
from dialogs.transcript.reads.tool_calls import offers_notes, offers_tools
from health.models import CompactionRun

# What is sent ahead of the messages, in the order of most templates.
AHEAD = ("tools", "instructions", "taskdoc", "reminders")
# A part of a request as a value that is equal for equal parts, and its length.
Part = tuple[object, int]


def stable_prefix(course_id: int) -> float | None:
    """A share of the newest request, from 0 to 1; None before a course's second request."""
    manifests = list(
        Generation.objects.filter(course_id=course_id).order_by("-number").values_list("manifest", flat=True)[:2]
    )
    if len(manifests) < 2 or not all(manifest.get("messages") for manifest in manifests):
        return None
    sent = {pk for manifest in manifests for pk in manifest["messages"]}
    lengths = dict(Message.objects.filter(pk__in=sent).values_list("pk", Length("content")))
    newest, earlier = (list(_parts(manifest, lengths)) for manifest in manifests)
    common = takewhile(lambda pair: pair[0] == pair[1], zip(newest, earlier, strict=False))
    return sum(part[1] for part, _same in common) / max(1, sum(length for _what, length in newest))


def _parts(manifest: Mapping[str, Any], lengths: Mapping[int, int]) -> Iterator[Part]:
    hashes = {name: str(manifest[name]) for name in AHEAD if name in manifest}
    long = dict(Blob.objects.filter(pk__in=hashes.values()).values_list("pk", Length("content")))
    for name in AHEAD:
        if name in hashes:
            yield (name, hashes[name]), long.get(hashes[name], 0)
    for entry in _entries(manifest):
        length = lengths.get(entry.message_id or 0, 0) if entry.content is None else len(entry.content)
        yield entry, length


def _entries(manifest: Mapping[str, Any]) -> list[Entry]:
    """The view that was sent, less the prompts that were left out, and what was said after it was made."""
    sent = dict.fromkeys(manifest["messages"])
    run = CompactionRun.objects.filter(pk=manifest.get("view") or 0).only("view").first()
    view = [entry for entry in load(run.view if run else ()) if entry.message_id is None or entry.message_id in sent]
    known = {entry.message_id for entry in view}
    return view + [Entry(message_id=pk) for pk in sent if pk not in known]


@dataclass(frozen=True, kw_only=True)
class OwnToolsNow:
    """`tokens` are what a request is shorter by without them, `share` is that of the room, where one is known."""

    names: tuple[str, ...]
    tokens: int
    share: float | None
    choice: str
    # Not all of our tools are offered, to spare a small room.
    is_spared: bool
    # The LLM takes no tools, so there is nothing to choose.
    has_none: bool

    @property
    def percent(self) -> float | None:
        return None if self.share is None else 100 * self.share


def own_tools_of(dialog: Dialog) -> OwnToolsNow:
    """`dialog` as `dialog_to_drive` reads it."""
    ours, guard = own_tools(dialog), guard_of(dialog)
    tokens = _cost(dialog, {tool.name for tool in ours})
    is_automatic = dialog.own_tools == OwnTools.AUTOMATIC and not dialog.is_client_driven
    return OwnToolsNow(
        names=tuple(tool.name for tool in ours),
        tokens=tokens,
        share=tokens / guard.room if guard and guard.room > 0 else None,
        choice=dialog.own_tools,
        is_spared=is_automatic and not offers_notes(dialog),
        has_none=not offers_tools(dialog.llm),
    )


def _cost(dialog: Dialog, names: set[str]) -> int:
    counter, offered = counter_of(dialog.llm), offered_tools(dialog)
    others = [tool for tool in offered if tool["function"]["name"] not in names]
    return overhead(dialog.llm, offered, counter) - overhead(dialog.llm, others, counter)
