"""Carries a view over to a history that the client has changed a little, so that it is not compacted again.

Some clients write a message, such as the present files, again at the end of each request. Each such request is another
branch, to which the earlier view does not apply. Here it is carried over: messages of both branches stay as they were
compacted, new ones are added as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from django.utils import timezone

from dialogs.api.writes.client_messages import Copies, about, ids_of, shown_by, translated
from dialogs.llms.counter import counter_of
from dialogs.models import Course, Dialog, Message, ToolCall, ViewChange
from dialogs.models.message import BY_PEOPLE, Role
from dialogs.transcript import model_view
from dialogs.transcript.model_view import Entry, as_said, dump, is_in_force
from dialogs.transcript.reads.path import course_branch, is_behind, read_tree
from dialogs.transcript.reads.tool_calls import calls_by_message
from health.compaction.reading.ledger import Entry as Stated
from health.compaction.reading.ledger import EntryKind, carry, extract
from health.compaction.reading.ledger_page import is_page, page, read
from health.compaction.reading.messages import parse
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import Kind, Unit, total
from health.compaction.terms.units import Role as Speaker
from health.configured import context_config
from health.models import CompactionRun

# Of the messages that a view was made of so many must still be there, or it was made of another history.
LEAST_SHARED = 2 / 3
# Two ends of histories that are longer are not compared: that costs their product.
MOST_COMPARED = 250_000
# What was laid down goes along in so much of the limit, at most, where a client left the rest of its history out.
MOST_CARRIED = 0.25
# So many of the person's messages are looked through for what they told.
MOST_READ = 2_000
NO_FIGURES = ("estimated_before", "estimated_after", "tokens_now", "messages_before", "messages_after")


def carry_view(row: Dialog, course: Course) -> bool:
    """Let the newest view of the course hold on the branch of its new leaf, as far as that says the same.

    False where there is no such view, or too little of what it was made of.
    """
    head, leaf = _newest(course), row.current_leaf
    if head is None or leaf is None or is_behind(head, leaf):
        return head is not None
    found = Message.objects.filter(course=course).in_bulk()
    branch = [found[pk] for pk in read_tree(row.pk).path(leaf.pk) if pk in found]
    was = [found[pk] for pk in read_tree(row.pk).path(head.leaf_id) if pk in found]
    same = _same(was, branch)
    view = [_still_said(entry, same) for entry in shown_by(head, was)]
    if any(_tells_of_others(entry, same) for entry in view):
        return False
    end = _end(branch, same, view) if len(same) >= LEAST_SHARED * len(was) else -1
    if end >= 0:
        _hold(course, head, view, branch[: end + 1], same)
    return end >= 0


def _still_said(entry: Entry, same: Copies) -> Entry:
    """Of a ledger the lines whose messages still stand, by their new names, as the history may be changed again: what a
    client took out of it is said no more."""
    if entry.content is None or entry.message_id or not is_page(entry.content):
        return entry
    places = {str(pk): str(one.pk) for pk, one in same.items()}
    lines = [one for one in read(entry.content) if not one.source_id.isdigit() or one.source_id in places]
    told = [replace(one, source_id=places.get(one.source_id, one.source_id)) for one in lines]
    return replace(entry, content=page(told, left_out=0), covers=tuple(pk for pk in entry.covers if pk in same))


def _tells_of_others(entry: Entry, same: Copies) -> bool:
    """Whether compaction told in words of its own what stands there no more, so that nobody can take it out."""
    is_told = entry.message_id is None and entry.kind != Kind.PLACEHOLDER
    return is_told and not all(pk in same for pk in entry.covers)


def keep_ledger(row: Dialog, course: Course) -> None:
    """Of a history that a client replaced by its own summary: what was laid down before, and what a person pinned."""
    head, branch = _newest(course), course_branch(row.current_leaf)
    if head is None or not branch:
        return
    kit = Kit(counter=counter_of(row.llm))
    standing = kit.counted(parse([{"role": one.role, "content": one.content} for one in branch]).units)
    in_force = extract([_earlier(head), *standing])
    unit = carry(in_force, standing=standing, budget_tokens=_room(head, total(standing)), kit=kit)
    carried = [Entry(content=unit.content, kind=unit.kind.value)] if unit else []
    if written := [*carried, *_pins(head, branch)]:
        run = _record(course, head, branch[-1], [*written, *as_said(branch)])
        # What the client leaves out next was said in this history.
        run.ledger = [{"text": one.text, "kind": str(one.kind)} for one in in_force if one.role == Speaker.USER]
        run.save(update_fields=["ledger"])


def _earlier(head: CompactionRun) -> Unit:
    """What was in force before, as a ledger: of facts those that the person told."""
    typed = Message.objects.filter(course=head.course_id, role=Role.USER, origin__in=BY_PEOPLE)
    told = "\n".join(typed.order_by("-seq").values_list("content", flat=True)[:MOST_READ])
    entries = [
        Stated(kind=EntryKind(one["kind"]), text=one["text"], source_id="earlier", stated=True)
        for one in head.ledger
        if one["kind"] != EntryKind.FACT or one["text"] in told
    ]
    return Unit(id="earlier", role=Speaker.USER, content=page(entries, left_out=0), kind=Kind.SUMMARY)


def _room(head: CompactionRun, standing_tokens: int) -> int:
    """A tenth of the limit, as after any compaction; up to a quarter where what the client left does not need it."""
    config, limit = context_config(), head.limit_tokens
    free = int(config.goal * limit) - standing_tokens
    return max(int(config.ledger_share * limit), min(int(MOST_CARRIED * limit), free))


def _pins(head: CompactionRun, branch: Sequence[Message]) -> Iterator[Entry]:
    said = "\n".join(one.content for one in branch)
    pinned = Message.objects.filter(course=head.course_id, mark__pinned=True).exclude(pk__in=[one.pk for one in branch])
    for message in pinned.select_related("course").order_by("seq"):
        if message.content.strip() not in said:
            yield Entry(content=model_view.quote(message, message.content), kind=model_view.KIND, covers=(message.pk,))


def _newest(course: Course) -> CompactionRun | None:
    """The view that holds on some branch: not one that a person undid."""
    run = course.head_run
    while run is not None and not is_in_force(run, (run.leaf_id,)):
        run = run.parent_run
    return run


def _same(was: Sequence[Message], branch: Sequence[Message]) -> dict[int, Message]:
    """The new branch's message that says the same, by the id of the old branch's. Order and rounds are kept."""
    calls = calls_by_message([one.pk for one in (*was, *branch)])
    shorter = min(len(was), len(branch))
    begin = next((at for at, (one, other) in enumerate(zip(was, branch, strict=False)) if one != other), shorter)
    same = {one.pk: one for one in was[:begin]}
    olds, news = was[begin:], branch[begin:]
    if len(olds) * len(news) <= MOST_COMPARED:
        before, now = ([_said(one, calls) for one in messages] for messages in (olds, news))
        same |= {olds[at].pk: news[place] for at, place in _in_common(before, now)}
    return _whole_rounds(same, was, branch, calls)


def _said(message: Message, calls: Mapping[int, Sequence[ToolCall]]) -> str:
    """What a client would have to send for the same message."""
    asked = [(call.call_id, call.name, call.arguments) for call in calls.get(message.pk, ())]
    beside = [message.parts.get("wire"), message.parts.get("tool_call_id")]
    return json.dumps([message.role, message.content.strip(), beside, asked], sort_keys=True)


def _in_common(before: Sequence[str], now: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The longest text that both have in the same order, as pairs of places."""
    best = [[0] * (len(now) + 1) for _each in range(len(before) + 1)]
    for at in range(len(before) - 1, -1, -1):
        for place in range(len(now) - 1, -1, -1):
            taken = best[at + 1][place + 1] + len(now[place]) if before[at] == now[place] else 0
            best[at][place] = max(taken, best[at + 1][place], best[at][place + 1])
    at = place = 0
    while at < len(before) and place < len(now):
        if before[at] == now[place] and best[at][place] == best[at + 1][place + 1] + len(now[place]):
            yield at, place
            at, place = at + 1, place + 1
        elif best[at + 1][place] >= best[at][place + 1]:
            at += 1
        else:
            place += 1


def _whole_rounds(
    same: dict[int, Message],
    was: Sequence[Message],
    branch: Sequence[Message],
    calls: Mapping[int, Sequence[ToolCall]],
) -> dict[int, Message]:
    """Without rounds of which a call or a result is another one: a view has them whole or not at all."""
    old = {one: members for members in _rounds(was, calls) for one in members}
    new = {one: members for members in _rounds(branch, calls) for one in members}
    places = {pk: one.pk for pk, one in same.items()}
    return {
        pk: one
        for pk, one in same.items()
        if [places.get(each) for each in old.get(pk, (pk,))] == list(new.get(one.pk, (one.pk,)))
    }


def _rounds(messages: Iterable[Message], calls: Mapping[int, Sequence[ToolCall]]) -> Iterator[tuple[int, ...]]:
    """The ids of each message with calls and of the results that follow it."""
    members: list[int] = []
    for message in messages:
        if message.role == Role.TOOL and members:
            members.append(message.pk)
            continue
        if members:
            yield tuple(members)
        members = [message.pk] if message.pk in calls else []
    if members:
        yield tuple(members)


def _end(branch: Sequence[Message], same: Mapping[int, Message], view: Iterable[Entry]) -> int:
    """Where the view that is carried over ends: behind the last message that it does not have as it was said.

    But not before the first that is new, so that the requests to come need not carry it again. -1: it has all.
    """
    as_said = {entry.message_id for entry in view if entry.content is None}
    place = {one.pk: at for at, one in enumerate(branch)}
    changed = [place[one.pk] for pk, one in same.items() if pk not in as_said]
    first_new = next((at for at, one in enumerate(branch) if one.pk not in {each.pk for each in same.values()}), 0)
    end = max(first_new - 1, *changed) if changed else -1
    while 0 <= end < len(branch) - 1 and branch[end + 1].role == Role.TOOL:
        end += 1
    return end


def _hold(course: Course, head: CompactionRun, view: Iterable[Entry], branch: Sequence[Message], same: Copies) -> None:
    """Record the view as a run for which nothing was compacted, made from the one that it was."""
    here = {one.pk for one in branch}
    same = {pk: one for pk, one in same.items() if one.pk in here}
    _record(course, head, branch[-1], _entries(view, branch, same), same)


def _record(
    course: Course, head: CompactionRun, leaf: Message, view: Iterable[Entry], same: Copies = MappingProxyType({})
) -> CompactionRun:
    before, run = course.head_run, CompactionRun.objects.get(pk=head.pk)
    run.pk, run.parent_run, run.leaf, run.turn, run.through_seq = None, before, leaf, leaf.turn, leaf.seq
    run.trigger, run.status, run.requested_by = CompactionRun.Trigger.CARRIED, CompactionRun.Status.APPLIED, None
    run.view = dump(view)
    # As they were read with it: of the head they may not have been.
    run.removed, run.steps, run.reward, run.coherence = ids_of(run.removed, same), [], None, None
    run.coverage, run.losses = about(run.coverage, same), about(run.losses, same)
    for name in NO_FIGURES:
        setattr(run, name, None)
    run.started_at = run.finished_at = timezone.now()
    run.save(force_insert=True)
    course.head_run = run
    course.save(update_fields=["head_run"])
    ViewChange.objects.create(course=course, before=before, after=run, why=ViewChange.Why.APPLIED)
    return run


def _entries(view: Iterable[Entry], branch: Sequence[Message], same: Copies) -> Iterator[Entry]:
    """The old view in the new messages' names, and what is new between them at its place."""
    place = {one.pk: at for at, one in enumerate(branch)}
    known = {one.pk for one in same.values()}
    new = [one for one in branch if one.pk not in known]
    for entry in view:
        if not any(pk in same for pk in entry.ids) and entry.ids:
            continue
        at = place[same[entry.message_id].pk] if entry.message_id else -1
        while new and place[new[0].pk] < at:
            yield Entry(message_id=new.pop(0).pk)
        yield translated(entry, same)
    yield from (Entry(message_id=one.pk) for one in new)
