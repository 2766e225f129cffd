"""The input of a run: the course's messages as units, the limit, and the counter.

Strategies start from the original messages, whatever was compacted before. Only a chain with the pruning agent starts
from the present view: a model cannot read days of work again at every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, chain, repeat
from typing import Any

from dialogs.agents.reads import shortening_of
from dialogs.context.border import Context, read_context, system_text
from dialogs.context.estimate import estimate, offered_tools, overhead
from dialogs.llms.counter import counter_of
from dialogs.models import Message
from dialogs.models.message import INSERTED, MessageOrigin, Role
from dialogs.transcript import model_view
from dialogs.transcript.attachments import with_blobs
from dialogs.transcript.model_view import HANDOVER, NOT_STORED, Piece
from dialogs.transcript.reads.path import course_branch, stands_behind
from dialogs.transcript.standing_rules import load, taken_back
from dialogs.turns.reads.turns import dialog_to_drive
from health.compaction.config import ContextConfig, Summaries
from health.compaction.laws.invariants import is_said, requests
from health.compaction.reading.ledger_page import page, read
from health.compaction.reading.messages import MARKS, WRITTEN_AS, Parsed, parse
from health.compaction.terms.ports import Counter, Kit
from health.compaction.terms.reasons import Reason
from health.compaction.terms.units import INSTRUCTING, ContextState, Kind, Unit, total
from health.compaction.terms.units import Role as WireRole
from health.models import CompactionRun
from health.tokens.corrected import correction_of
from health.tokens.images import media_in

SYSTEM = "system"
READS_THE_VIEW = "prune_with_agent"
# A partial answer longer than this share of the limit is not pinned.
MOST_PINNED = 0.4
# The share of the room beside instructions and tools in which a person's unanswered messages are pinned; and the share
# for the newest of them alone.
UNANSWERED_SHARE, NEWEST_UNANSWERED_SHARE = 0.5, 0.75
TASK_CHARS = 600


@dataclass(frozen=True, kw_only=True)
class Material:
    """`said` is the text that each stored message sends, by its id as text; `shortened` the step that shortened the
    texts before the messages, if any. Counts are estimates."""

    state: ContextState
    kit: Kit
    said: Mapping[str, str]
    tokens_before: int
    messages_before: int
    shortened: tuple[Reason, ...] = ()


def material(run: CompactionRun, config: ContextConfig) -> Material:
    dialog = dialog_to_drive(run.dialog_id)
    context = read_context(dialog, course_branch(run.leaf))
    counter = counter_of(dialog.llm)
    tools = offered_tools(dialog, compacted=True)
    now = estimate(context, offered_tools(dialog), counter)
    whole = context.whole()
    source = _stored(context) if READS_THE_VIEW in run.chain else whole
    kit = Kit(counter=counter, may_summarise=config.summaries is Summaries.MODEL)
    units = _protected(kit.counted(units_of(source, counter)), run)
    state = ContextState(
        units=units,
        limit=run.limit_tokens,
        overhead_tokens=overhead(dialog.llm, tools, counter) + run.reserve_tokens + beside(context, counter),
        answer_tokens=run.reserve_tokens,
        task=run.focus or dialog.taskdoc.strip()[:TASK_CHARS],
        taken_back=taken_back(load(dialog.standing_rules)),
        laid_down=_laid_down_before(context),
        config=config,
    )
    # The stored content, as a view may have shortened the message already.
    said = {str(piece.message.pk): piece.content for one in (source, whole) for piece in one.pieces if piece.message}
    return Material(
        state=with_unanswered(state, context),
        kit=kit,
        said=said,
        tokens_before=now.tokens + run.reserve_tokens,
        messages_before=len(context.pieces),
        shortened=tuple(filter(None, [shortening_of(dialog)])),
    )


def beside(context: Context, counter: Counter) -> int:
    """The tokens beside the stored messages: the task's progress, and a client's messages that are not stored."""
    own = (message.content for message in context.branch if message.pk == NOT_STORED)
    return sum(counter.count([text for text in (context.task, *own) if text]))


def _stored(context: Context) -> Context:
    """The context without a client's messages that are not stored, as each of its requests has them."""
    view = tuple(entry for entry in context.view or () if entry.message_id != NOT_STORED)
    return replace(context, branch=tuple(one for one in context.branch if one.pk != NOT_STORED), view=view)


def _laid_down_before(context: Context) -> tuple[Unit, ...]:
    """The ledger in the first message's handover, for this run's own ledger: that message may be shortened."""
    opening = context.branch[0] if context.branch else None
    handover = opening.parts.get("handover") if opening else None
    if opening is None or not handover or handover["away"] or not handover.get("laid_down"):
        return ()
    entries = [replace(entry, source_id=str(opening.pk)) for entry in read(handover["laid_down"])]
    ledger = Unit(id="laid-down", role=WireRole.USER, kind=Kind.SUMMARY, content=page(entries, left_out=0))
    return (ledger,)


def of_the_floor(context: Context, counter: Counter) -> tuple[Unit, ...]:
    """Units that include all that must stay: those of the view if there is one, as no strategy touches these."""
    units = units_of(_stored(context) if context.run_id and not context.is_whole else context.whole(), counter)
    return Kit(counter=counter).counted(units)


def with_unanswered(state: ContextState, context: Context) -> ContextState:
    """The state with a person's messages since the last answer with text pinned, the newest first within their share:
    they fit and are not read yet, so passages must not replace them. The first and the last message stay without a pin,
    and are shortened in their own turn."""
    ends = requests(state.units)
    older = [unit for unit in state.units if is_said(unit) and unit.id.isdigit() and unit not in ends]
    if not older:
        return state
    since = _last_answer(context, older[0])
    room, last = _room_of_words(state), total(ends[-1:])
    sizes = accumulate(total([unit]) for unit in reversed(older))
    late = zip(reversed(older), sizes, strict=True)
    shares = chain([NEWEST_UNANSWERED_SHARE], repeat(UNANSWERED_SHARE))
    kept = {
        unit.id
        for (unit, size), share in zip(late, shares, strict=False)
        if int(unit.id) > since and last + size <= share * room
    }
    return state.with_units(replace(unit, pinned=True) if unit.id in kept else unit for unit in state.units)


def _room_of_words(state: ContextState) -> int:
    return state.limit - state.overhead_tokens - total(unit for unit in state.units if unit.role in INSTRUCTING)


def _last_answer(context: Context, first: Unit) -> int:
    """The id of the last answer with text on this branch; 0 if there is none after `first`. A view may lack it, so for
    a branch that was read in part the database is asked."""
    seen = (one.pk for one in reversed(context.branch) if _is_answer(one) and not context.calls.get(one.pk))
    found = next(seen, 0)
    if context.is_whole or not context.branch:
        return found
    late = Message.objects.filter(course=context.branch[-1].course_id, role=Role.ASSISTANT, calls=None)
    unseen = late.filter(pk__gt=max(found, int(first.id)), content__regex=r"\S").order_by("-pk")
    return next((one.pk for one in unseen.iterator() if stands_behind(one, context.branch[-1])), found)


def _is_answer(message: Message) -> bool:
    return message.role == Role.ASSISTANT and bool(message.content.strip())


def units_of(context: Context, counter: Counter | None = None) -> tuple[Unit, ...]:
    """One unit for each message that is sent, with the message's id; images are counted, text is not yet."""
    known = correction_of(counter or counter_of(context.dialog.llm))

    def images(message: Mapping[str, Any]) -> int:
        media = media_in(with_blobs(message.get("content"), context.blobs), context.dialog.llm.model_id)
        return known.of_images(media.tokens, media.pictures)

    return _sourced(parse(tuple(_messages(context)), media_tokens=images), context)


def units_with_flat_images(context: Context) -> tuple[Unit, ...]:
    """One unit for each message that is sent, with one size for every image: for figures that do not depend on an
    LLM."""
    return _sourced(parse(tuple(_messages(context))), context)


def _sourced(parsed: Parsed, context: Context) -> tuple[Unit, ...]:
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
        marks |= {"spoken": message.pk in context.spoken, "failed": context.failed.get(message.pk)}
    calls = context.calls.get(message.pk, ())
    if calls:
        found["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    return found


def _marks_of_written(kind: str) -> dict[str, Any]:
    """The marks of a text that compaction wrote, by the view's word. A stored message, whatever its text, has none."""
    marks: dict[str, Any] = {"priority": 1} if kind == HANDOVER else {"pinned": kind == model_view.KIND}
    written = Kind.PLACEHOLDER if kind == Kind.PLACEHOLDER else Kind.SUMMARY
    return {**marks, WRITTEN_AS: written.value}


def _protected(units: tuple[Unit, ...], run: CompactionRun) -> tuple[Unit, ...]:
    """Pins what must stay in this run only: all after a chosen message, an answer cut in its middle, and the message to
    answer if no person typed it. The laws protect only a person's last message."""
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
