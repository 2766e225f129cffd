"""Reads context events: a person's own in full, and counts of everybody's; cleanup tasks; the agent's steps since a
person's last message, for loop detection; the loop notice; and whether a fresh start is offered.

Each is one query, however many events there are. Estimates stay as they were when the event happened. The owner of a
dialog sees all of a task; assignees and staff see no contents.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import CharField, Count, DateTimeField, Q, QuerySet, UUIDField
from django.db.models.functions import Cast, Left, Length, Substr
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import in_words
from dialogs.common.text import sentences
from dialogs.llms.guard import may_be_guarded
from dialogs.models import LLM, Agent, Dialog, Message, ToolCall
from dialogs.models.dialog import PausedBy
from dialogs.models.message import BY_PEOPLE, MessageOrigin, Role
from dialogs.transcript.reads.tool_calls import RESULT
from dominds.prepared import prepared
from health.compaction.config import AtMilestone
from health.loops import MOST_STEPS, AnswerStep, EndedCall, SignKind
from health.models import CleanupTask, CompactionRun, ContextEvent

Status, Code = CompactionRun.Status, ContextEvent.Code
CAME_TO_NOTHING = (Status.SKIPPED, Status.FAILED, Status.CANCELLED)
# Two results are compared by this many first characters, and by their length.
COMPARED_CHARS = 5_000
# Enough for the steps with their results; after a round of very many calls fewer steps are compared.
MOST_MESSAGES = 10 * MOST_STEPS
OVER = (ToolCall.Status.DONE, ToolCall.Status.FAILED)
MOST_AGENTS = 20
MOST_DAYS = 60
Rows = list[tuple[str, int]]
# The date in UTC, as both databases store times; a date function of SQLite would call Python for each row.
DAY = Substr(Cast("happened_at", CharField()), 1, 10)
# The columns that a page or file needs; without a run's view, which may be long.
SHOWN = (
    *("code", "happened_at", "estimated", "limit", "facts", "dialog__title", "agent__name", "agent__slug"),
    *("llm__model_id", "llm__provider__name", "run__reason", "run__why"),
)


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """A filter of events. An empty or None field filters nothing."""

    code: str = ""
    agent_id: int | None = None
    llm_id: int | None = None
    since: datetime | None = None

    def of(self, events: QuerySet[ContextEvent]) -> QuerySet[ContextEvent]:
        wanted = {"code": self.code, "agent": self.agent_id, "llm": self.llm_id, "happened_at__gte": self.since}
        return events.filter(**{name: value for name, value in wanted.items() if value})


@dataclass(frozen=True, kw_only=True)
class EventCounts:
    """Events of all people, counted by kind, agent and day. No text of any dialog."""

    by_code: Rows
    by_agent: Rows
    # Days of UTC, the newest first.
    by_day: Rows


def events_of(user: User, wanted: EventFilter, *, before: int | None = None) -> QuerySet[ContextEvent]:
    """The events of a person's own dialogs, the newest first; older than the event `before`."""
    events = wanted.of(ContextEvent.objects.filter(owner=user)).order_by("-happened_at", "-pk")
    last = ContextEvent.objects.filter(owner=user, pk=before).first() if before else None
    if last is not None:
        same = Q(happened_at=last.happened_at, pk__gte=last.pk)
        events = events.filter(happened_at__lte=last.happened_at).exclude(same)
    return events.select_related("dialog", "agent", "llm__provider", "run").only(*SHOWN)


def counts_of_all(wanted: EventFilter) -> EventCounts:
    events = wanted.of(ContextEvent.objects.order_by())
    return EventCounts(
        by_code=_counted(events, "code", "-count", "code"),
        by_agent=_by_agent(events),
        by_day=_counted(events.annotate(day=DAY), "day", "-day", most=MOST_DAYS),
    )


def _counted(events: QuerySet[ContextEvent], name: str, *order: str, most: int | None = None) -> list[tuple[Any, int]]:
    return list(events.values_list(name).annotate(count=Count("*")).order_by(*order)[:most])


def _by_agent(events: QuerySet[ContextEvent]) -> Rows:
    """Counts by key first: grouping by a hundred thousand names is slow."""
    counts = _counted(events, "agent", "-count", "agent", most=MOST_AGENTS)
    names = dict(Agent.objects.filter(pk__in=[key for key, _count in counts if key]).values_list("pk", "name"))
    return [(names.get(key, ""), count) for key, count in counts]


def agents_to_choose(found: QuerySet[Any], *, asked: int) -> QuerySet[Agent]:
    """The agents in the rows of `found`, and the one that is `asked` for."""
    return Agent.objects.filter(_occurs("agent", found) | Q(pk=asked), is_direct=False).only("name")


def llms_to_choose(found: QuerySet[Any], *, asked: int = 0) -> QuerySet[LLM]:
    """The LLMs in the rows of `found`, and the one that is `asked` for."""
    used = LLM.objects.filter(_occurs("llm", found) | Q(pk=asked))
    return used.select_related("provider").only("model_id", "provider__name")


def codes_to_choose(found: QuerySet[Any], *, asked: str) -> list[tuple[str, str]]:
    """The kinds of events that were `found`, with their labels."""
    there = {asked, *found.order_by().values_list("code", flat=True).distinct()}
    return [(code, str(label)) for code, label in ContextEvent.Code.choices if code in there]


def _occurs(name: str, found: QuerySet[Any]) -> Q:
    """Reads `found` once. With an EXISTS per LLM, PostgreSQL scanned everybody's events for each unused one."""
    return Q(pk__in=found.order_by().values(name))


def cause_of(event: ContextEvent) -> str:
    """Why an event happened, if more is known than its code, in the reader's language."""
    if event.code == Code.LOOP_DETECTED:
        return sentences(loop_sentences(event.facts))
    own = event.facts.get("why") or event.facts.get("reason") or event.facts.get("cause")
    if told := own or (event.run.told if event.run else ""):
        return in_words(told)
    return _("The provider’s own words are in the dialog.") if event.code == "PROVIDER_OVERFLOW" else ""


def tasks_for(user: User) -> QuerySet[CleanupTask]:
    """The open tasks that a person may see: their own, those of their dialogs; staff see all, as they assign them."""
    found = CleanupTask.objects.select_related("dialog__agent", "dialog__owner", "assignee", "closed_by")
    return found if user.is_staff else found.filter(Q(dialog__owner=user) | Q(assignee=user))


def has_open_task(dialog: Dialog) -> bool:
    """Whether the dialog has an open cleanup task. Without a guard it has none."""
    return may_be_guarded(dialog) and bool(_open_tasks(dialog.pk))


@prepared(UUIDField())
def _open_tasks(dialog_id: Any) -> QuerySet[CleanupTask, Any]:
    return CleanupTask.objects.filter(dialog=dialog_id, closed_at=None).order_by().values_list("pk")[:1]


def assignable(task: CleanupTask) -> QuerySet[User]:
    """The people who can be given a task: the dialog's owner and staff."""
    people = User.objects.filter(Q(is_staff=True) | Q(pk=task.dialog.owner_id), is_active=True)
    return people.order_by("username")


def is_fresh_start_offered(dialog: Dialog) -> bool:
    """Whether a fresh start is offered: for an hour, until it is made or declined. No query if nothing is guarded."""
    if not may_be_guarded(dialog):
        return False
    event = _offers.first(dialog.pk, timezone.now() - timedelta(hours=1))
    if event is None or event.facts.get("declined"):
        return False
    return not was_reset_since(dialog, event.happened_at)


@prepared(UUIDField(), DateTimeField())
def _offers(dialog_id: Any, since: Any) -> QuerySet[ContextEvent]:
    return ContextEvent.objects.filter(
        dialog=dialog_id,
        code=Code.OVER_HIT,
        facts__escalated=str(AtMilestone.OFFER),
        happened_at__gt=since,
    )[:1]


def was_reset_since(dialog: Dialog, moment: datetime) -> bool:
    """Whether a fresh start was queued after this moment; one that came to nothing does not count."""
    resets = CompactionRun.objects.filter(dialog=dialog, trigger=CompactionRun.Trigger.RESET, queued_at__gt=moment)
    return resets.exclude(status__in=CAME_TO_NOTHING).exists()


@dataclass(frozen=True, kw_only=True)
class RecentSteps:
    steps: tuple[AnswerStep, ...]
    over_hits: int


@dataclass(frozen=True, kw_only=True)
class LoopNotice:
    seen: tuple[str, ...]


def recent_steps(dialog: Dialog) -> RecentSteps:
    """The newest answers of the branch since a person's message, the course's start, a fresh start or the last loop."""
    answers = _answers(dialog)
    if not answers:
        return RecentSteps(steps=(), over_hits=0)
    calls = _calls([answer.pk for answer in answers])
    over_hits = ContextEvent.objects.filter(dialog=dialog, code=Code.OVER_HIT, happened_at__gte=answers[0].created_at)
    steps = tuple(AnswerStep(text=answer.content, calls=tuple(calls[answer.pk])) for answer in answers)
    return RecentSteps(steps=steps, over_hits=over_hits.count())


def _answers(dialog: Dialog) -> list[Message]:
    leaf = dialog.current_leaf
    if leaf is None:
        return []
    newer = Message.objects.filter(course_id=leaf.course_id, seq__gt=_last_checked_seq(dialog), seq__lte=leaf.seq)
    shown = newer.order_by("-seq").only("parent_id", "role", "origin", "created_at")[:MOST_MESSAGES]
    found = {message.pk: message for message in shown}
    branch: list[Message] = []
    at: int | None = leaf.pk
    while at in found and not (found[at].role == Role.USER and found[at].origin in BY_PEOPLE):
        branch.append(found[at])
        at = found[at].parent_id
    ids = [message.pk for message in branch if message.role == Role.ASSISTANT][:MOST_STEPS]
    return list(Message.objects.filter(pk__in=ids).order_by("seq"))


def _last_checked_seq(dialog: Dialog) -> int:
    """The `seq` of the newest message that was already checked for a loop, or is before a fresh start."""
    event = _loops.first(dialog.pk)
    reset = CompactionRun.objects.filter(
        dialog=dialog, trigger=CompactionRun.Trigger.RESET, status=CompactionRun.Status.APPLIED
    ).order_by("-id")
    return max(event.facts["through"] if event else 0, reset.values_list("through_seq", flat=True).first() or 0)


def _calls(message_ids: list[int]) -> defaultdict[int, list[EndedCall]]:
    """The ended calls by their message. Arguments and results are only compared, never shown."""
    found: defaultdict[int, list[EndedCall]] = defaultdict(list)
    rows = ToolCall.objects.filter(message_id__in=message_ids, status__in=OVER)
    for row in rows.annotate(head=Left(RESULT, COMPARED_CHARS), chars=Length(RESULT)).defer("result"):
        call = EndedCall(
            name=row.name,
            arguments=_plain(row.arguments),
            outcome=f"{max(row.chars, COMPARED_CHARS)}:{row.head}",
            failed=row.status == ToolCall.Status.FAILED,
        )
        found[row.message_id].append(call)
    return found


def _plain(arguments: str) -> str:
    """JSON with sorted keys; text that is not JSON is returned unchanged."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


@prepared(UUIDField())
def _loops(dialog_id: Any) -> QuerySet[ContextEvent]:
    return ContextEvent.objects.filter(dialog=dialog_id, code=Code.LOOP_DETECTED).order_by("-id")[:1]


def loop_notice(dialog: Dialog) -> LoopNotice | None:
    """The last loop found, until the person dismisses it, types something, or makes a fresh start."""
    event = None if dialog.is_client_driven or dialog.current_leaf_id is None else _loops.first(dialog.pk)
    if event is None or event.facts.get("dismissed") or _has_gone_on(dialog, event):
        return None
    return LoopNotice(seen=loop_sentences(event.facts))


def _has_gone_on(dialog: Dialog, event: ContextEvent) -> bool:
    if event.facts["paused"]:
        return dialog.paused_by != PausedBy.LOOP or was_reset_since(dialog, event.happened_at)
    typed = Message.objects.filter(dialog=dialog, origin=MessageOrigin.TYPED, seq__gt=event.facts["through"])
    is_another_course = dialog.current_leaf is not None and dialog.current_leaf.course_id != event.facts["course"]
    return is_another_course or typed.exists() or was_reset_since(dialog, event.happened_at)


def loop_sentences(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence for each sign of the loop, and one if the context was over its limit meanwhile."""
    said = tuple(_said(seen) for seen in facts.get("seen", ()))
    return (*said, _("The context was over its limit meanwhile.")) if facts.get("over_hits") else said


def _said(seen: Mapping[str, Any]) -> str:
    count, numbers = seen["count"], seen["numbers"]
    match seen["kind"]:
        case SignKind.CALLS:
            words = _("%(tool)s was called %(count)s times with the same arguments and the same result.")
            return words % {"tool": seen["tool"], "count": count}
        case SignKind.ERRORS:
            return _("%(tool)s failed %(count)s times with the same error.") % {"tool": seen["tool"], "count": count}
        case SignKind.ANSWERS:
            words = _("The last %(count)s answers are %(percent)s %% alike.")
            return words % {"count": count, "percent": numbers[0]}
    words = _("The last %(count)s answers became shorter and shorter: from %(first)s characters to %(last)s.")
    return words % {"count": count, "first": f"{numbers[0]:,}", "last": f"{numbers[1]:,}"}
