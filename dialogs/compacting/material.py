"""What a run begins with: the course's messages as units, the limit, and how to count.

Strategies that choose begin with the originals, whatever was compacted before. Only a chain with the pruning agent in
it begins with the present view: a model cannot be made to read days of work again at every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q

from dialogs import quotes
from dialogs.attachments import with_blobs
from dialogs.compacting.estimate import counter_of, estimate, overhead
from dialogs.compacting.present import offered_tools
from dialogs.context import Context, Piece, read_context, system_text
from dialogs.model_view import HANDOVER
from dialogs.models import MessageMark
from dialogs.models.message import INSERTED, MessageOrigin, Role
from dialogs.selectors.path import course_branch
from dialogs.selectors.turns import dialog_to_drive
from dialogs.standing_rules import load, taken_back
from health.compaction.config import ContextConfig
from health.compaction.messages import MARKS, WRITTEN_AS, parse
from health.compaction.ports import Counter, Kit
from health.compaction.units import ContextState, Kind, Priority, Unit
from health.models import CompactionRun
from health.tokens.corrected import correction_of
from health.tokens.images import media_in

SYSTEM = "system"
READS_THE_VIEW = "prune_with_agent"
# A partial answer that is longer than this share of the limit cannot be promised to stay.
MOST_PINNED = 0.4
TASK_CHARS = 600


@dataclass(frozen=True, kw_only=True)
class Material:
    """`said` is what each stored message sends by itself, by its id as text. Counts are estimates."""

    state: ContextState
    kit: Kit
    said: Mapping[str, str]
    tokens_before: int
    messages_before: int


def material(run: CompactionRun, config: ContextConfig) -> Material:
    dialog = dialog_to_drive(run.dialog_id)
    context = read_context(dialog, course_branch(run.leaf))
    counter = counter_of(dialog.llm)
    tools = offered_tools(dialog, compacted=True)
    now = estimate(context, offered_tools(dialog), counter)
    whole = context.whole()
    source = context if READS_THE_VIEW in run.chain else whole
    kit = Kit(counter=counter)
    units = _protected(kit.counted(units_of(source, counter)), run)
    state = ContextState(
        units=units,
        limit=run.limit_tokens,
        overhead_tokens=overhead(dialog.llm, tools, counter) + run.reserve_tokens + beside(context, counter),
        answer_tokens=run.reserve_tokens,
        task=run.focus or dialog.taskdoc.strip()[:TASK_CHARS],
        taken_back=taken_back(load(dialog.standing_rules)),
        config=config,
    )
    # In a view a message may be shortened already: what it says by itself is what was said.
    said = {str(piece.message.pk): piece.content for one in (source, whole) for piece in one.pieces if piece.message}
    return Material(
        state=state,
        kit=kit,
        said=said,
        tokens_before=now.tokens + run.reserve_tokens,
        messages_before=len(context.pieces),
    )


def beside(context: Context, counter: Counter) -> int:
    """What is sent with the messages and is none of them: how far the task is."""
    return counter.count([context.task])[0] if context.task else 0


def of_the_floor(context: Context, counter: Counter) -> tuple[Unit, ...]:
    """Units among which is all that must stay. No strategy touches that, so a view has it; for what was marked since
    the view was made, all of the course is read."""
    units = units_of(context.whole() if context.is_whole or _is_more_marked(context) else context, counter)
    return Kit(counter=counter).counted(units)


def _is_more_marked(context: Context) -> bool:
    seen = [message.pk for message in context.branch]
    marks = MessageMark.objects.filter(
        Q(pinned=True) | Q(priority=Priority.P1), message__course=context.branch[-1].course_id
    )
    return marks.exclude(message_id__in=seen).exists()


def units_of(context: Context, counter: Counter | None = None) -> tuple[Unit, ...]:
    """One unit for each message that is sent, its id the message's; its images are counted, its text is not yet."""
    known = correction_of(counter or counter_of(context.dialog.llm))

    def images(message: Mapping[str, Any]) -> int:
        media = media_in(with_blobs(message.get("content"), context.blobs), context.dialog.llm.model_id)
        return known.of_images(media.tokens, media.pictures)

    parsed = parse(tuple(_messages(context)), media_tokens=images)
    covers = {_id_of(piece, at): piece.entry.covers for at, piece in enumerate(context.pieces)}
    return tuple(
        replace(unit, source_ids=tuple(map(str, covers[unit.id]))) if covers.get(unit.id) else unit
        for unit in parsed.units
    )


def _messages(context: Context) -> Iterator[dict[str, Any]]:
    text = system_text(context.rewritten())
    if text:
        yield {"role": "system", "content": text, "id": SYSTEM}
    for at, piece in enumerate(context.pieces):
        yield _message(piece, context, at)


def _id_of(piece: Piece, at: int) -> str:
    return str(piece.message.pk) if piece.message else f"written-{at}"


def _message(piece: Piece, context: Context, at: int) -> dict[str, Any]:
    found: dict[str, Any] = {"role": piece.role.value, "content": piece.content, "id": _id_of(piece, at)}
    message = piece.message
    if message is None:
        return {**found, MARKS: _marks_of_written(piece.entry.kind)}
    mark = context.marks.get(message.pk)
    marks: dict[str, Any] = {"inserted": message.origin in INSERTED, "pinned": bool(mark and mark.pinned)}
    marks["framed"] = bool(message.parts.get("framed"))
    found |= {"created_at": message.created_at.isoformat(), MARKS: marks}
    if mark and mark.priority:
        marks["priority"] = mark.priority
    if piece.parts:
        found["content"] = piece.parts
    if piece.role == Role.TOOL:
        found["tool_call_id"] = message.parts["tool_call_id"]
        marks["spoken"] = message.pk in context.spoken
    calls = context.calls.get(message.pk, ())
    if calls:
        found["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    return found


def _marks_of_written(kind: str) -> dict[str, Any]:
    """The view says what compaction wrote; a stored message is somebody's own, whatever its words."""
    marks: dict[str, Any] = {"priority": 1} if kind == HANDOVER else {"pinned": kind == quotes.KIND}
    written = Kind.PLACEHOLDER if kind == Kind.PLACEHOLDER else Kind.SUMMARY
    return {**marks, WRITTEN_AS: written.value}


def _protected(units: tuple[Unit, ...], run: CompactionRun) -> tuple[Unit, ...]:
    """What stays in this run for the run's own sake: all after a chosen message, an answer cut in its middle, and what
    is to be answered next though no person said it. The laws protect a person's last words only."""
    kept = set(_after(units, run))
    if run.leaf.origin in INSERTED or run.leaf.role == Role.SYSTEM:
        kept.add(str(run.leaf_id))
    if run.leaf.origin == MessageOrigin.CONTINUATION and run.leaf.parent_id:
        kept |= {unit.id for unit in units if unit.id == str(run.leaf.parent_id) and _is_short(unit, run)}
    return tuple(replace(unit, pinned=True) if unit.id in kept else unit for unit in units)


def _after(units: tuple[Unit, ...], run: CompactionRun) -> Iterator[str]:
    if run.up_to_seq is None:
        return
    end = str(
        run.dialog.messages.filter(seq__lte=run.up_to_seq, pk__in=_ids(units))
        .order_by("-seq")
        .values_list("pk", flat=True)
        .first()
    )
    place = {unit.id: at for at, unit in enumerate(units)}
    yield from (unit.id for unit in units[place.get(end, -1) + 1 :] if unit.id != SYSTEM)


def _ids(units: tuple[Unit, ...]) -> list[int]:
    return [int(unit.id) for unit in units if unit.id.isdigit()]


def _is_short(unit: Unit, run: CompactionRun) -> bool:
    return (unit.estimated_tokens or 0) < MOST_PINNED * run.limit_tokens
