"""Which dialogs a person sees, and their health. Ownership is decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, UUIDField
from django.db.models.functions import Coalesce, JSONObject

from dialogs.llms.guard import NarrowLimit, limit_below_window
from dialogs.llms.reads import configured
from dialogs.models import Dialog, Generation, Message, SearchText, ViewChange
from dialogs.transcript.reads.path import stands_behind
from dialogs.transcript.search import query_words
from dominds.prepared import prepared
from health.models import HealthReading
from health.selectors import LARGE, Meter, meter, meter_of, readings_in

Shelf = Literal["active", "clients", "archived", "trash"]
SHELVES: dict[Shelf, Q] = {
    "active": Q(archived_at=None, trashed_at=None),
    # Active dialogs that clients drive.
    "clients": Q(archived_at=None, trashed_at=None, is_client_driven=True),
    "archived": Q(archived_at__isnull=False, trashed_at=None),
    "trash": Q(trashed_at__isnull=False),
}


def owned_dialog(*, user: User | AnonymousUser, dialog_id: UUID) -> Dialog:
    """The dialog, if it is this person's. Raises Dialog.DoesNotExist for a foreign one as for a missing one."""
    if not user.is_authenticated:
        raise Dialog.DoesNotExist
    found = shown_dialog(dialog_id)
    if found is None or found.owner_id != user.pk:
        raise Dialog.DoesNotExist
    return found


def shown_dialog(dialog_id: UUID) -> Dialog | None:
    """A dialog with what its page is made of; None when it is gone. The caller has asked whose dialog it is."""
    return _shown.first(dialog_id)


@prepared(UUIDField())
def _shown(dialog_id: Any) -> QuerySet[Dialog]:
    joined = ("agent", "llm__provider", "llm__bounds", "current_leaf__course")
    return Dialog.objects.select_related(*joined).filter(pk=dialog_id).order_by()


def list_dialogs(*, user: User, state: Shelf = "active", search: str = "") -> QuerySet[Dialog]:
    """This person's dialogs on one shelf, newest first; every word must occur in the title or in a message."""
    found = on_shelf(user.pk, state)
    for word in search.replace("\0", "").split():
        found = found.filter(Q(title__icontains=word) | Exists(_said(word)))
    return found


def newest_said(dialogs: Collection[UUID], search: str) -> dict[UUID, Message]:
    """The newest message of each dialog in which every word occurs, where there is one."""
    said = Subquery(_said(search).order_by("-pk").values("pk")[:1])
    found = dict(Dialog.objects.filter(pk__in=dialogs).order_by().values_list("pk", said))
    messages = Message.objects.in_bulk([pk for pk in found.values() if pk])
    return {dialog: messages[pk] for dialog, pk in found.items() if pk in messages}


def _said(word: str) -> QuerySet[Any]:
    """The outer query's messages that contain the word. Search words are faster to scan than texts; a word of
    punctuation alone has none."""
    parts = query_words(word)
    if not parts:
        return Message.objects.filter(dialog=OuterRef("pk"), content__icontains=word)
    # No message has a larger number. Without a word of it PostgreSQL would look through everybody's messages at once.
    kept = SearchText.objects.filter(message__dialog=OuterRef("pk"), message__seq__lte=OuterRef("last_seq"))
    return kept.filter(*(Q(words__contains=part) for part in parts))


def on_shelf(owner_id: Any, shelf: Shelf) -> QuerySet[Dialog]:
    found = Dialog.objects.filter(SHELVES[shelf], owner=owner_id).select_related(
        "agent", "llm__provider", "llm__bounds"
    )
    return found.order_by("-active_at")


def dialog_meter(dialog: Dialog) -> Meter:
    newest: Any = newest_reading.first(dialog.pk)
    shown = meter(
        newest,
        configured=configured(dialog.llm),
        window_source=dialog.llm.context_length_source,
        llm_name=dialog.llm.slug,
        left=_left(newest, dialog.current_leaf) if newest and dialog.current_leaf else "",
        failed=newest is not None and newest.failed,
    )
    return _narrowed(shown, limit_below_window(dialog))


def _narrowed(shown: Meter, narrow: NarrowLimit) -> Meter:
    return replace(shown, limit=narrow.limit, limit_is_learned=narrow.is_learned)


def _left(newest: Any, leaf: Message) -> str:
    """Why the newest reading does not describe the next request's context; empty where it does."""
    read: Generation = newest.generation
    if leaf.course_id != read.course_id:
        return "new_course" if leaf.course.number > read.prompt_leaf.course.number else "other_branch"
    if not stands_behind(read.prompt_leaf, leaf):
        return "other_branch"
    return _left_by_change(newest.before, newest.after, newest.why) if newest.why else ""


def _left_by_change(before: int | None, after: int | None, why: str) -> str:
    """Compares the view in force at the reading with the present one. What was undone and redone since does not
    count."""
    if before == after:
        return ""
    return "undone" if why == ViewChange.Why.UNDONE else "compacted"


@prepared(UUIDField())
def newest_reading(dialog_id: Any) -> QuerySet[HealthReading]:
    """With how its course's view was changed since, and whether an answer has `failed` since."""
    later = Generation.objects.filter(dialog=dialog_id, pk__gt=OuterRef("pk"), finished_at__isnull=False)
    ended_badly = later.filter(status__in=(Generation.Status.FAILED, Generation.Status.INTERRUPTED))
    joined = ("generation__course", "generation__prompt_leaf__course")
    large = (*LARGE, "generation__prompt_leaf__content", "generation__prompt_leaf__parts")
    found = HealthReading.objects.filter(generation__dialog=dialog_id).select_related(*joined).defer(*large)
    return found.annotate(failed=Exists(ended_badly), **_changed_since()).order_by("-pk")[:1]


# Of the changes of a view since: what held before the first, and what the last one made hold.
CHANGED = {"before": "pk", "after": "-pk", "why": "-pk"}


def _changed_since() -> dict[str, Subquery]:
    """Beside a reading."""
    since = Coalesce(OuterRef("generation__finished_at"), OuterRef("generation__started_at"))
    changed = ViewChange.objects.filter(course=OuterRef("generation__course"), changed_at__gt=since)
    return {name: Subquery(changed.order_by(by).values(name)[:1]) for name, by in CHANGED.items()}


def with_newest(found: QuerySet[Dialog]) -> QuerySet[Dialog]:
    """Each with `newest`, of its newest reading: its key, its level, and what tells whether it is of this context."""
    readings = HealthReading.objects.filter(generation__dialog=OuterRef("pk")).order_by("-pk")
    columns = {"pk": "pk", "level": "level", "llm": "generation__llm_name", "course": "generation__course_id"}
    columns |= {"window": "context_window"}
    told = JSONObject(**columns, **_changed_since())
    newest = Subquery(readings.values(told=told)[:1])
    return found.annotate(newest=newest, leaf_course=F("current_leaf__course"))


def left_by(newest: dict[str, Any], leaf_course: int | None) -> str:
    """Why the newest reading no longer describes the context. Unlike `dialog_meter` it ignores other branches of the
    same course."""
    if leaf_course is not None and newest["course"] != leaf_course:
        return "new_course"
    return _left_by_change(newest["before"], newest["after"], newest["why"]) if newest["why"] else ""


def meters_of(dialogs: Collection[Dialog]) -> dict[UUID, Meter]:
    """The meters of dialogs that came `with_newest`, in one query where no admin has set a limit."""
    newest = {dialog.pk: getattr(dialog, "newest", None) or {} for dialog in dialogs}
    readings = readings_in([told["pk"] for told in newest.values() if told])
    limits = _limits(dialogs)
    shown = {
        dialog.pk: meter_of(
            readings.get(newest[dialog.pk].get("pk", 0)),
            configured=configured(dialog.llm),
            window_source=dialog.llm.context_length_source,
            llm_name=dialog.llm.slug,
            left=left_by(newest[dialog.pk], getattr(dialog, "leaf_course", None)) if newest[dialog.pk] else "",
        )
        for dialog in dialogs
    }
    return {key: _narrowed(one, limits[key]) for key, one in shown.items()}


def _limits(dialogs: Collection[Dialog]) -> dict[UUID, NarrowLimit]:
    """By dialog; each agent's limit with an LLM is read once."""
    shared = {dialog.pk: (dialog.agent_id, dialog.llm_id, dialog.compaction) for dialog in dialogs}
    limits = {shared[one.pk]: limit_below_window(one) for one in {shared[one.pk]: one for one in dialogs}.values()}
    return {key: limits[of] for key, of in shared.items()}
