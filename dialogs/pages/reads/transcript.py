"""The transcript: the current course's rows, and above it the earlier courses, folded; `course_page` reads one of them.
A row is a message with everything shown of it, or something between messages, such as a compaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, Exists, OuterRef, Q, QuerySet, UUIDField

from dialogs.compaction.reads.compaction_rows import compaction_rows
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import guard_of
from dialogs.models import (
    AutonomousRun,
    Course,
    Dialog,
    Generation,
    Message,
    MessageMark,
    Question,
    QueuedMessage,
    RemediationPrompt,
    Reminder,
)
from dialogs.models.message import MessageOrigin, Role
from dialogs.pages.reads.rows import (
    AttemptRow,
    LiveRow,
    MessageRow,
    QueuedRow,
    Row,
    UnansweredRow,
    Visibility,
    hidden_or_shortened,
)
from dialogs.transcript.attachments import Attachment, attachments_of
from dialogs.transcript.model_view import left_out, lineage_of, shortened_ids
from dialogs.transcript.reads.courses import (
    SHOWN_COURSES,
    EarlierCourse,
    IdSlice,
    current_course,
    earlier_course,
    earlier_courses,
    earlier_ids,
    id_slice,
)
from dialogs.transcript.reads.tool_calls import CallRow, call_rows
from dominds.prepared import Many, prepared
from health.models import CleanupTask, CompactionRun, ContextEvent

SHOWN_ROWS = 100
COURSE_PAGE_ROWS = 50
Status = Generation.Status
Messages = Mapping[int, Message]
# The rows below a message, each with its time, by which they are ordered.
Below = defaultdict[int, list[tuple[datetime, Row]]]


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """`hidden`: how many earlier messages of the current course are left out. `hidden_courses`: how many first courses.
    `version`: the dialog's when it was read."""

    rows: tuple[Row, ...]
    hidden: int
    version: int
    course: Course | None
    earlier: tuple[EarlierCourse, ...]
    hidden_courses: int

    @property
    def question(self) -> Question | None:
        calls = (call for row in self.rows if isinstance(row, MessageRow) for call in row.calls)
        asked = (call.question for call in calls if call.question)
        return next((question for question in asked if question.status == Question.Status.PENDING), None)


class PresentKinds(NamedTuple):
    """Which kinds of rows the dialog has at all, read in one statement: kinds that it lacks are not queried."""

    queued: bool = True
    runs: bool = True
    events: bool = True
    tasks: bool = True
    autonomous: bool = True
    reminders: bool = True
    prompts: bool = True


EVERYTHING = PresentKinds()
KINDS = (QueuedMessage, CompactionRun, ContextEvent, CleanupTask, AutonomousRun, Reminder, RemediationPrompt)


def present_kinds(dialog: Dialog) -> PresentKinds:
    return next((PresentKinds(*found) for found in _found_of(dialog.pk)), EVERYTHING)


@prepared(UUIDField())
def _found_of(dialog_id: Any) -> QuerySet[Dialog, Any]:
    found = (Exists(kind._default_manager.filter(dialog=OuterRef("pk"))) for kind in KINDS)
    return Dialog.objects.filter(pk=dialog_id).order_by().values_list(*found)


def transcript(dialog: Dialog, *, limit: int | None = SHOWN_ROWS, has: PresentKinds = EVERYTHING) -> Transcript:
    leaf = dialog.current_leaf
    course = current_course(dialog)
    path = id_slice(course_id=leaf.course_id, last_id=leaf.pk) if leaf else IdSlice()
    shown = path.last(limit)
    queued = [QueuedRow(queued=queued) for queued in (_queued(dialog.pk) if has.queued else ())]
    before = earlier_ids(dialog)
    listed = before[-SHOWN_COURSES:] if limit else before
    rows = tuple(rows_of(dialog, course, path, shown, is_current=True, has_runs=has.runs))
    unanswered = (UnansweredRow(),) if _is_unanswered(dialog, rows) else ()
    return Transcript(
        rows=(*rows, *unanswered, *queued),
        hidden=len(path.said) - len(shown.said),
        version=dialog.version,
        course=course,
        earlier=earlier_courses(listed) if listed else (),
        hidden_courses=len(before) - len(listed),
    )


def _is_unanswered(dialog: Dialog, rows: Sequence[Row]) -> bool:
    """Does the last typed message wait for nothing, without a try that says why?"""
    leaf = dialog.current_leaf
    if leaf is None or leaf.origin != MessageOrigin.TYPED or dialog.is_client_driven:
        return False
    is_at_rest = not (dialog.is_busy or dialog.answer_due)
    return is_at_rest and not any(isinstance(row, AttemptRow) and row.can_retry for row in rows)


@prepared(UUIDField())
def _queued(dialog_id: Any) -> QuerySet[QueuedMessage]:
    return QueuedMessage.objects.filter(dialog=dialog_id)


def course_page(dialog: Dialog, *, course_id: int, last_id: int, page: int) -> tuple[tuple[Row, ...], bool]:
    """One page of an earlier course, to be read only; and whether another one follows."""
    path = id_slice(course_id=course_id, last_id=last_id)
    course = Course.objects.get(pk=course_id)
    rows = rows_of(dialog, course, path, path.page(page, COURSE_PAGE_ROWS), is_current=False)
    return tuple(row for row in rows if not isinstance(row, LiveRow)), len(path.said) > page * COURSE_PAGE_ROWS


def place_of(dialog: Dialog, message: Message) -> tuple[int | None, str]:
    """The number of the earlier course in which a message stands, None for the current one, and the query of its
    page. A message of another version is on no page: then it is the dialog's own."""
    leaf = dialog.current_leaf
    if leaf is None or message.course_id == leaf.course_id:
        path = id_slice(course_id=message.course_id, last_id=leaf.pk) if leaf else IdSlice()
        return None, "?all=1" if message.pk in path.said[:-SHOWN_ROWS] else ""
    found = earlier_course(dialog, number=message.course.number)
    path = id_slice(course_id=message.course_id, last_id=found.last_id) if found else IdSlice()
    if message.pk not in path.said:
        return None, ""
    return message.course.number, f"?page={path.said.index(message.pk) // COURSE_PAGE_ROWS + 1}"


@dataclass(frozen=True, kw_only=True)
class EndActions:
    """The actions that are possible at the end of a branch, and their message. None in an earlier course and in a
    client's dialog, which are read-only."""

    edit: int | None = None
    repeat: int | None = None
    retry: frozenset[int | None] = frozenset()
    # An answer to this message is wanted: another try may come.
    due_after: int | None = None
    # Answers that were cut for a compaction and go on in another message.
    continued: frozenset[int | None] = frozenset()


def rows_of(
    dialog: Dialog, course: Course | None, path: IdSlice, shown: IdSlice, *, is_current: bool, has_runs: bool = True
) -> Iterator[Row]:
    """`shown` is the part of the course's `path` that is asked for.

    A message that asks the model to continue a cut answer is not shown: its rows are shown below the answer.
    """
    messages = {message.pk: message for message in _said(shown.said)}
    made = _generations(shown.ids)
    made_by: dict[int | None, Generation] = {one.message_id: one for one in made if one.message_id in messages}
    ends = _ends(dialog, [messages[pk] for pk in shown.said], made_by) if is_current else EndActions()
    ids = frozenset(shown.ids)
    below = _tries((one for one in made if one.prompt_leaf_id in ids), ends, messages)
    lineage = lineage_of(course, frozenset(path.ids))
    for row in compaction_rows(course, shown.ids if has_runs else (), lineage if is_current else None):
        below[row.run.leaf_id].append((row.run.queued_at, row))
    make = _RowData(
        messages=messages,
        made_by=made_by,
        calls=call_rows(shown.said),
        attachments=attachments_of(messages.values()),
        versions=_versions(dialog, messages) if is_current else {},
        visibilities=hidden_or_shortened(lineage.view_run, path.ids)
        or (_left_out(dialog, messages, lineage.view_run) if is_current else {}),
        ends=ends,
        pins=_pins(dialog, path, messages) if is_current else {},
        is_current=is_current,
    )
    for pk in shown.ids:
        if pk in messages and messages[pk].origin != MessageOrigin.CONTINUATION:
            yield make.row(messages[pk])
        yield from (row for _moment, row in sorted(below[pk], key=lambda pair: pair[0]))


def _left_out(dialog: Dialog, messages: Messages, run: CompactionRun | None) -> dict[int, Visibility]:
    """The visibility of messages that a client leaves out or shortens, while no view is in force."""
    if run is not None or not dialog.is_client_driven:
        return {}
    gone = left_out(dialog.client, {pk: message.seq for pk, message in messages.items()})
    return dict.fromkeys(gone, Visibility.REMOVED) | dict.fromkeys(shortened_ids(dialog.client), Visibility.SHORTENED)


@prepared(Many(BigIntegerField()))
def _said(ids: Any) -> QuerySet[Message]:
    return Message.objects.select_related("remediation_prompt", "mark").filter(pk__in=ids).order_by()


@prepared(Many(BigIntegerField()))
def _generations(ids: Any) -> QuerySet[Generation]:
    """The generations that made these messages, and the tries after them; the newest first."""
    which = Q(message_id__in=ids) | Q(prompt_leaf_id__in=ids)
    return Generation.objects.select_related("reading").filter(which).defer("usage_raw").order_by("-id")


@dataclass(frozen=True, kw_only=True)
class _RowData:
    """The data for the rows of messages, by message id."""

    messages: Messages
    made_by: Mapping[int | None, Generation]
    calls: Mapping[int, tuple[CallRow, ...]]
    attachments: Mapping[int, tuple[Attachment, ...]]
    versions: Mapping[int | None, tuple[int, ...]]
    visibilities: Mapping[int, Visibility]
    ends: EndActions
    pins: Mapping[int, float]
    is_current: bool

    def row(self, message: Message) -> MessageRow:
        pk = message.pk
        calls = self.calls.get(pk, ())
        results = {call.call.result_message_id for call in calls}
        return MessageRow(
            message=message,
            generation=self.made_by.get(pk),
            calls=calls,
            attachments=self.attachments.get(pk, ()),
            versions=self.versions.get(message.parent_id, (pk,)),
            is_last_user=pk == self.ends.edit,
            is_last_answer=pk == self.ends.repeat,
            is_current=self.is_current,
            visibility=self.visibilities.get(pk),
            has_shortened_results=any(self.visibilities.get(result or 0) == Visibility.SHORTENED for result in results),
            is_to_be_continued=pk in self.ends.continued,
            continues=_begun(message, self.messages),
            pinned_share=self.pins.get(pk),
        )


def _begun(message: Message, messages: Messages) -> tuple[str, ...]:
    """The earlier pieces of an answer that was cut for a compaction."""
    asked = messages.get(message.parent_id or 0)
    if asked is None or asked.origin != MessageOrigin.CONTINUATION:
        return ()
    cut = messages.get(asked.parent_id or 0)
    return (*_begun(cut, messages), cut.content) if cut else ()


def _pins(dialog: Dialog, path: IdSlice, messages: Messages) -> dict[int, float]:
    """The share of the limit that is pinned, at the message that was marked last, where it is too much."""
    marks = [message.mark for message in messages.values() if hasattr(message, "mark")]
    pinned = [mark for mark in marks if mark.pinned or mark.priority == MessageMark.Priority.P1]
    share = pinned_share(dialog, path.ids) if pinned else None
    if share is None or share <= MOST_PINNED_SHARE:
        return {}
    return {max(pinned, key=lambda mark: mark.marked_at).message_id: share}


def _ends(dialog: Dialog, messages: list[Message], made_by: dict[int | None, Generation]) -> EndActions:
    typed = [message.pk for message in messages if message.origin == MessageOrigin.TYPED]
    asked = [message.pk for message in messages if message.role == Role.USER]
    last = messages[-1] if messages else None
    going_on = [message for message in messages if message.origin == MessageOrigin.CONTINUATION]
    given_up = going_on[-1:] if last in going_on and not dialog.answer_due else []
    end = given_up[0].parent_id if given_up else last and last.pk
    may_not = dialog.is_busy or dialog.is_client_driven
    return EndActions(
        edit=typed[-1] if typed else None,
        repeat=end if end in made_by and not dialog.is_client_driven else None,
        retry=frozenset() if may_not else frozenset({dialog.current_leaf_id, *asked[-1:]}),
        due_after=dialog.current_leaf_id if dialog.answer_due else None,
        continued=frozenset(message.parent_id for message in going_on if message not in given_up),
    )


def _versions(dialog: Dialog, messages: dict[int, Message]) -> dict[int | None, tuple[int, ...]]:
    """The siblings of these messages, by their parent, oldest first."""
    parents = {message.parent_id for message in messages.values()}
    found: defaultdict[int | None, list[int]] = defaultdict(list)
    read = _following_or_first if None in parents else _following
    for pk, parent_id in read(dialog.pk, parents - {None}):
        found[parent_id].append(pk)
    return {parent_id: tuple(ids) for parent_id, ids in found.items()}


@prepared(UUIDField(), Many(BigIntegerField()))
def _following(dialog_id: Any, ids: Any) -> QuerySet[Message, Any]:
    return _versions_in(dialog_id, Q(parent_id__in=ids))


@prepared(UUIDField(), Many(BigIntegerField()))
def _following_or_first(dialog_id: Any, ids: Any) -> QuerySet[Message, Any]:
    return _versions_in(dialog_id, Q(parent_id__in=ids) | Q(parent=None))


def _versions_in(dialog_id: Any, which: Q) -> QuerySet[Message, Any]:
    return Message.objects.filter(which, dialog=dialog_id).order_by("seq").values_list("pk", "parent_id")


def _tries(made: Iterable[Generation], ends: EndActions, messages: Messages) -> Below:
    """Of generations, the newest first: the tries that follow each message and became none, and the answer that is
    being made.

    A try without text is shown only while it is the newest: later ones, and one to come, explain it away.
    """
    rows: Below = defaultdict(list)
    newest: set[int] = set()
    for generation in made:
        leaf = generation.prompt_leaf_id
        is_newest = leaf not in newest
        another_comes = generation.retry_at is not None and leaf == ends.due_after
        newest.add(leaf)
        row: Row | None = None
        if generation.status == Status.RUNNING:
            row = LiveRow(generation=generation, continues=_is_continuation(messages.get(leaf)))
        elif generation.message_id is None and (generation.partial_text or (is_newest and not another_comes)):
            editable = leaf if leaf == ends.edit else None
            row = AttemptRow(generation=generation, can_retry=is_newest and leaf in ends.retry, editable=editable)
        if row:
            rows[leaf].append((generation.started_at, row))
    return rows


def _is_continuation(message: Message | None) -> bool:
    return message is not None and message.origin == MessageOrigin.CONTINUATION


# Above this share of the limit a person is warned: what is protected leaves no room to compact.
MOST_PINNED_SHARE = 0.25
PROTECTED = Q(mark__pinned=True) | Q(mark__priority=MessageMark.Priority.P1)


def pinned_share(dialog: Dialog, branch: Collection[int]) -> float | None:
    """The share of the limit, else of the window, that protected messages take; None where neither is known."""
    guard = guard_of(dialog)
    room = guard.room if guard else dialog.llm.context_length or dialog.llm.input_length
    if not room:
        return None
    texts = Message.objects.filter(PROTECTED, pk__in=branch).values_list("content", flat=True)
    return sum(counter_of(dialog.llm).count(list(texts))) / room
