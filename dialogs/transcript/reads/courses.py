"""The courses of the branch that is shown: the current one, and the earlier ones that led to it.

Branches are followed within one course, so that the cost of a turn does not grow with the dialog.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Count, IntegerField, Max, OuterRef, QuerySet, Subquery, UUIDField
from django.db.models.functions import Coalesce, Left

from dialogs.models import Course, Dialog, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.reads.path import messages_by_id, read_tree, upward
from dominds.prepared import prepared

SHOWN_COURSES = 20
FIRST_WORDS_CHARS = 200
SPOKEN = (MessageOrigin.TYPED, MessageOrigin.AGENT, MessageOrigin.CLIENT)


@dataclass(frozen=True)
class IdSlice:
    """The messages of one course on one branch, by id: all of them, and those that are no results of its calls."""

    ids: tuple[int, ...] = ()
    said: tuple[int, ...] = ()

    def last(self, limit: int | None) -> IdSlice:
        """The end of this slice with its last `limit` messages, not counting tool results."""
        if not limit or len(self.said) <= limit:
            return self
        return IdSlice(self.ids[self.ids.index(self.said[-limit]) :], self.said[-limit:])

    def page(self, number: int, size: int) -> IdSlice:
        """One page of the messages; tool results stand on the page of their call."""
        said = self.said[(number - 1) * size : number * size]
        if not said:
            return IdSlice()
        following = self.said[number * size : number * size + 1]
        end = self.ids.index(following[0]) if following else len(self.ids)
        return IdSlice(self.ids[self.ids.index(said[0]) : end], said)


@dataclass(frozen=True, kw_only=True)
class EarlierCourse:
    """A course that is over. Its counts include other versions; `last_id` is its last message on this branch."""

    course: Course
    last_id: int
    messages: int
    generations: int
    first_words: str


def current_course(dialog: Dialog) -> Course | None:
    """The course of the branch that is shown, else the newest."""
    if dialog.current_leaf is not None:
        return dialog.current_leaf.course
    return Course.objects.filter(dialog=dialog).order_by("-number").first()


def has_earlier_courses(dialog: Dialog) -> bool:
    """Is there a course before the one that is shown?"""
    leaf = dialog.current_leaf
    return leaf is not None and leaf.course.number > 1


def opening_of(dialog: Dialog, number: int) -> Message | None:
    """The message with which a course began, other than the first."""
    found = Message.objects.filter(course__dialog=dialog, course__number=number, origin=MessageOrigin.HANDOVER)
    return found.select_related("parent__course").first()


def handover_of(course: Course) -> dict[str, Any] | None:
    """The course's handover: text, tokens, whether a person took it away."""
    opening = Message.objects.filter(course=course, origin=MessageOrigin.HANDOVER).only("parts").first()
    return opening.parts.get("handover") if opening else None


def id_slice(*, course_id: int, last_id: int) -> IdSlice:
    """The messages from the beginning of a message's course to it."""
    found: dict[int, tuple[int | None, bool]] = {
        pk: (parent_id, role == Role.TOOL and call is not None) for pk, parent_id, role, call in _places(course_id)
    }
    ids = list(upward(last_id, {pk: parent_id for pk, (parent_id, _is_result) in found.items()}))[::-1]
    # A client may send a result of a call that it does not send: that stands for itself.
    return IdSlice(tuple(ids), tuple(pk for pk in ids if not found[pk][1]))


@prepared(BigIntegerField())
def _places(course_id: Any) -> QuerySet[Message, Any]:
    found = Message.objects.filter(course_id=course_id).order_by()
    return found.values_list("pk", "parent_id", "role", "result_of")


def earlier_ids(dialog: Dialog) -> list[tuple[int, int]]:
    """The earlier courses of the branch, oldest first: each with its last message there."""
    if dialog.current_leaf is None or not has_earlier_courses(dialog):
        return []
    came_from = {opened: (course_id, parent_id) for opened, course_id, parent_id in _openings(dialog.pk)}
    found: list[tuple[int, int]] = []
    at = dialog.current_leaf.course_id
    while at in came_from and came_from[at][0] not in (None, at):
        found.append(came_from[at])
        at = came_from[at][0]
    return found[::-1]


@prepared(UUIDField())
def _openings(dialog_id: Any) -> QuerySet[Message, Any]:
    found = Message.objects.filter(dialog_id=dialog_id, origin=MessageOrigin.HANDOVER)
    return found.values_list("course_id", "parent__course_id", "parent_id")


def earlier_courses(ids: list[tuple[int, int]]) -> tuple[EarlierCourse, ...]:
    """These courses as they are shown while folded, in one query."""
    last = dict(ids)
    return tuple(
        EarlierCourse(
            course=course,
            last_id=last[course.pk],
            messages=course.messages_count,
            generations=course.generations_count or 0,
            first_words=_first_line(course.first_words),
        )
        for course in _with_counts().filter(pk__in=last)
    )


def _with_counts() -> QuerySet[Any]:
    messages = Message.objects.filter(course=OuterRef("pk")).exclude(role=Role.TOOL)
    count = messages.order_by().values("course").annotate(count=Count("pk")).values("count")
    spoken = messages.filter(origin__in=SPOKEN).exclude(content="").order_by("seq")
    return Course.objects.annotate(
        messages_count=Coalesce(Subquery(count, output_field=IntegerField()), 0),
        # Generations are numbered within their course, without gaps.
        generations_count=Max("generations__number"),
        first_words=Subquery(spoken.annotate(head=Left("content", FIRST_WORDS_CHARS)).values("head")[:1]),
    )


def _first_line(text: str | None) -> str:
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")


def earlier_course(dialog: Dialog, *, number: int) -> EarlierCourse | None:
    """The earlier course with this number, if the branch that is shown went through it."""
    course = Course.objects.filter(dialog=dialog, number=number).first()
    found = [pair for pair in earlier_ids(dialog) if course and pair[0] == course.pk]
    return earlier_courses(found)[0] if found else None


# About a thousand tokens: small enough for a small window.
COURSE_PAGE_CHARS = 4_000
WORDS = {Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "tool result", Role.SYSTEM: "system message"}


def course_page(dialog: Dialog, *, number: int, page: int) -> str | None:
    """One page of an earlier course on the current branch, with its number and theirs; None where there is none."""
    text = _text(dialog, number)
    pages = [text[start : start + COURSE_PAGE_CHARS] for start in range(0, len(text), COURSE_PAGE_CHARS)]
    if not 1 <= page <= len(pages):
        return None
    return f"Course {number}, page {page} of {len(pages)}:\n\n{pages[page - 1]}"


def _text(dialog: Dialog, number: int) -> str:
    path = read_tree(dialog.pk).path(dialog.current_leaf_id)
    if dialog.current_leaf is None or dialog.current_leaf.course.number == number:
        return ""
    inside = set(Message.objects.filter(pk__in=path, course__number=number).values_list("pk", flat=True))
    messages = messages_by_id(message_id for message_id in path if message_id in inside)
    return "\n\n".join(f"[{WORDS[Role(m.role)]}]\n{m.content.strip()}" for m in messages if m.content.strip())
