"""What the model was sent, message by message, in any generation and in the view of a compaction; how much of a request
a prompt cache can reuse, because it begins as the one before; and the progress of a dialog's task, with statistics.

Messages and applied views never change, so what was sent can be read at any later time. The statistics count a token
for four characters, for programs and a debug line: decisions use `ports.Counter` instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from django.db.models.functions import Length

from dialogs.context.border import Context, read_context
from dialogs.context.estimate import present_context, sent_text
from dialogs.context.material import SYSTEM, units_of, units_with_flat_images
from dialogs.llms.counter import counter_of
from dialogs.models import LLM, Blob, Dialog, Generation, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.model_view import Entry, Piece, load, rounds_with, view_of, with_rounds
from dialogs.transcript.reads.path import course_branch
from health.compaction.reading.importance import importances, mentions_error
from health.compaction.snapshot import TaskSnapshot, begun, from_json
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import WRITTEN, Unit, tools_by_result
from health.configured import context_config
from health.models import CompactionRun

# The texts of a manifest in the order in which they are sent. The notice is part of a message.
TEXTS = ("instructions", "taskdoc", "reminders", "tools", "changed", "task", "own")
SHOWN_CHARS = 4_000


@dataclass(frozen=True, kw_only=True)
class ContextPart:
    """One message, or one of the texts before them. `kind` is its role, its author, or the text's name."""

    kind: str
    text: str
    chars: int
    tokens: int
    is_shortened: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether the page shows only a part of the text; the model got all of it."""
        return self.chars > len(self.text)


@dataclass(frozen=True, kw_only=True)
class ModelContext:
    """`tokens` is estimated; what the provider reported, if anything, is in `generation`."""

    parts: tuple[ContextPart, ...]
    messages: int
    generation: Generation | None = None
    run: CompactionRun | None = None

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


def seen_by_generation(dialog: Dialog, generation_id: int) -> ModelContext | None:
    """What this generation sent to the model; None if it is not of this dialog."""
    found = Generation.objects.select_related("prompt_leaf", "llm").filter(dialog=dialog, pk=generation_id).first()
    if found is None:
        return None
    branch = course_branch(found.prompt_leaf)
    kept = _kept(found)
    context = replace(read_context(dialog, branch), notice=kept.get("notice", ""), urge=kept.get("urge", ""))
    sent = set(found.manifest.get("messages", ()))
    entries = _shortened(_with_kept(_view(found.manifest.get("view"), branch), found, branch), found, branch)
    pieces = _pieces((entry for entry in entries if entry.message_id is None or entry.message_id in sent), branch)
    texts = [(name, kept[name], False) for name in TEXTS if name in kept]
    said = [_said(piece, context) for piece in pieces]
    return ModelContext(parts=_parts([*texts, *said], found.llm or dialog.llm), messages=len(said), generation=found)


def seen_after_run(dialog: Dialog, run_id: int) -> ModelContext | None:
    """The messages as in this run's view; None if the run is not of this dialog, or made no view."""
    run = CompactionRun.objects.select_related("leaf").filter(dialog=dialog, pk=run_id).first()
    if run is None or not run.view:
        return None
    branch = course_branch(run.leaf)
    context = replace(read_context(dialog, branch), notice="")
    said = [_said(piece, context) for piece in _pieces(load(run.view), branch)]
    return ModelContext(parts=_parts(said, dialog.llm), messages=len(said), run=run)


def _view(run_id: int | None, branch: tuple[Message, ...]) -> tuple[Entry, ...]:
    """The view at that time, undone since or not, with later messages. Old records may name another branch's."""
    said = {message.pk for message in branch}
    run = CompactionRun.objects.filter(pk=run_id or 0).first()
    while run is not None and run.leaf_id not in said:
        run = run.parent_run
    return view_of(run, branch)


def _with_kept(view: tuple[Entry, ...], generation: Generation, branch: tuple[Message, ...]) -> tuple[Entry, ...]:
    """The view with the messages that it showed as pinned. An imported record names only what was sent."""
    shown = {entry.message_id for entry in view}
    beside = [pk for pk in generation.manifest.get("messages", ()) if pk not in shown]
    wanted = [*generation.manifest.get("kept", ()), *beside]
    return with_rounds(view, rounds_with(wanted, branch), branch) if wanted else view


def _shortened(view: Iterable[Entry], generation: Generation, branch: tuple[Message, ...]) -> Iterable[Entry]:
    """The view with the messages that a client had shortened."""
    texts = {one.pk: one.parts.get("shortened") for one in branch if one.pk in generation.manifest.get("shortened", ())}
    return [replace(one, content=texts[one.message_id]) if one.message_id in texts else one for one in view]


def _pieces(entries: Iterable[Entry], branch: tuple[Message, ...]) -> list[Piece]:
    said = {message.pk: message for message in branch}
    return [Piece(entry, said.get(entry.message_id or 0)) for entry in entries]


def _said(piece: Piece, context: Context) -> tuple[str, str, bool]:
    is_shortened = piece.message is not None and piece.entry.content is not None
    return piece.entry.kind or piece.role.value, sent_text(piece, context), is_shortened


def _kept(generation: Generation) -> dict[str, str]:
    """The texts whose hashes the generation's manifest names."""
    hashes = {name: generation.manifest[name] for name in (*TEXTS, "notice", "urge") if generation.manifest.get(name)}
    texts = dict(Blob.objects.filter(sha256__in=hashes.values()).values_list("sha256", "content"))
    return {name: texts[sha256] for name, sha256 in hashes.items() if sha256 in texts}


def _parts(found: list[tuple[str, str, bool]], llm: LLM) -> tuple[ContextPart, ...]:
    sizes = counter_of(llm).count([text for _kind, text, _is_shortened in found])
    return tuple(
        ContextPart(kind=kind, text=text[:SHOWN_CHARS], chars=len(text), tokens=size, is_shortened=is_shortened)
        for (kind, text, is_shortened), size in zip(found, sizes, strict=True)
    )


# What precedes the messages, in the order of most templates.
AHEAD = ("tools", "instructions", "taskdoc", "reminders")
# A part of a request as a comparable value, and its length.
Part = tuple[object, int]


def stable_prefix(course_id: int) -> float | None:
    """The share, 0 to 1, of the newest request that equals the start of the one before; None before a course's second.

    Rebuilt from two manifests and measured in characters, so it is an estimate. Reads no text of any message.
    """
    manifests = list(
        Generation.objects.filter(course_id=course_id).order_by("-number").values_list("manifest", flat=True)[:2]
    )
    if len(manifests) < 2 or not all(manifest.get("messages") for manifest in manifests):
        return None
    sent = {pk for manifest in manifests for pk in manifest["messages"]}
    lengths = dict(Message.objects.filter(pk__in=sent).values_list("pk", Length("content")))
    newest, earlier = (list(_lengths(manifest, lengths)) for manifest in manifests)
    common = takewhile(lambda pair: pair[0] == pair[1], zip(newest, earlier, strict=False))
    return sum(part[1] for part, _same in common) / max(1, sum(length for _what, length in newest))


def _lengths(manifest: Mapping[str, Any], lengths: Mapping[int, int]) -> Iterator[Part]:
    hashes = {name: str(manifest[name]) for name in AHEAD if name in manifest}
    long = dict(Blob.objects.filter(pk__in=hashes.values()).values_list("pk", Length("content")))
    for name in AHEAD:
        if name in hashes:
            yield (name, hashes[name]), long.get(hashes[name], 0)
    for entry in _entries(manifest):
        length = lengths.get(entry.message_id or 0, 0) if entry.content is None else len(entry.content)
        yield entry, length


def _entries(manifest: Mapping[str, Any]) -> list[Entry]:
    """The view that was sent, without the prompts that were left out, and the messages after it."""
    sent = dict.fromkeys(manifest["messages"])
    run = CompactionRun.objects.filter(pk=manifest.get("view") or 0).only("view").first()
    view = [entry for entry in load(run.view if run else ()) if entry.message_id is None or entry.message_id in sent]
    known = {entry.message_id for entry in view}
    return view + [Entry(message_id=pk) for pk in sent if pk not in known]


# The progress of a task, for people and programs; and statistics of the context.
# How many characters of a result are read to find out whether it is an error.
LOOKED_AT = 2_000


def task_snapshot(dialog: Dialog) -> TaskSnapshot | None:
    """The dialog's snapshot, with as many of its newest actions as the settings say. None if no task has begun."""
    snapshot = from_json(dialog.task_snapshot)
    return snapshot.shown(context_config().payloads.max_actions) if snapshot else None


def snapshot_for_programs(dialog: Dialog) -> TaskSnapshot | None:
    """The dialog's snapshot; of a client's dialog, whose task is not known, derived from the messages."""
    if not dialog.is_client_driven:
        return task_snapshot(dialog)
    leaf = dialog.current_leaf
    units = units_of(read_context(dialog, course_branch(leaf)).whole()) if leaf else ()
    found = _told_by(units)
    return found.shown(context_config().payloads.max_actions) if found else None


def _told_by(units: Sequence[Unit]) -> TaskSnapshot | None:
    goal = next((unit.content for unit in units if _asks(unit)), "")
    if not goal:
        return None
    now, tools = begun(goal), tools_by_result(units)
    for unit in units:
        if tool := tools.get(unit.id):
            failed = mentions_error(unit.content[:LOOKED_AT])
            now = now.observed(f"{tool} failed: {unit.content}") if failed else now.acted(tool)
    return now


def _asks(unit: Unit) -> bool:
    return unit.role == Role.USER and not (unit.framed or unit.inserted or unit.kind in WRITTEN)


@dataclass(frozen=True, kw_only=True)
class PresentMessage:
    """`importance` is 0 to 1 by the kind of message: trimming keeps the highest."""

    id: str
    role: str
    kind: str
    estimated_tokens: int
    importance: float
    priority: int | None
    pinned: bool


def present_messages(dialog: Dialog) -> list[PresentMessage]:
    counter = counter_of(dialog.llm)
    units = Kit(counter=counter).counted(units_of(present_context(dialog), counter))
    weights = importances(units)
    return [
        PresentMessage(
            id=unit.id,
            role=unit.role.value,
            kind=unit.kind.value,
            estimated_tokens=unit.estimated_tokens or 0,
            importance=weights[unit.id],
            priority=unit.priority,
            pinned=unit.pinned,
        )
        for unit in units
    ]


def context_stats(dialog: Dialog) -> ContextStats:
    """Statistics of the messages that would be sent now; tokens are characters / 4 and 100 for each image, for any
    model.

    The text by which Dominds opens a course is not counted as a message.
    """
    context = present_context(dialog)
    opening = {str(one.pk) for one in context.branch if _opens_course(one)}
    units = [unit for unit in units_with_flat_images(context) if unit.id != SYSTEM and unit.id not in opening]
    return stats(units, snapshot=snapshot_for_programs(dialog))


def _opens_course(message: Message) -> bool:
    return message.origin == MessageOrigin.HANDOVER


CHARS_PER_TOKEN = 4
EVERY_STEPS = 5


@dataclass(frozen=True, kw_only=True)
class ContextStats:
    """`str()` is the debug line."""

    message_count: int
    estimated_tokens: int
    has_snapshot: bool

    def __str__(self) -> str:
        return f"Context stats: {self.message_count} messages, ~{self.estimated_tokens} tokens"


def stats(units: Iterable[Unit], *, snapshot: TaskSnapshot | None = None) -> ContextStats:
    units = tuple(units)
    characters = sum(map(_characters, units))
    images = sum(unit.image_tokens for unit in units)  # tokens already: 100 for each image
    return ContextStats(
        message_count=len(units),
        estimated_tokens=-(-characters // CHARS_PER_TOKEN) + images,
        has_snapshot=snapshot is not None and snapshot != TaskSnapshot(),
    )


def is_due(step: int, *, debug: bool) -> bool:
    """Whether the line is written after this step, counted from 1."""
    return debug and step > 0 and step % EVERY_STEPS == 0


def _characters(unit: Unit) -> int:
    """Text as it is; calls and their results as JSON."""
    calls = sum(len(_json({"name": call.name, "arguments": _read(call.arguments)})) for call in unit.calls)
    said = len(unit.content) if unit.answers is None else len(_json(_read(unit.content)))
    return said + calls


def _read(text: str) -> Any:
    """The value where the text is JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
