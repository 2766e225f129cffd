"""What went wrong with contexts, to be read: a person's own events with all there is to say, and counts of
everybody's; and the tasks to clean contexts up.

Each is one query, however many events there are. Estimates stay what they were when the event happened. The owner of a
dialog sees all of a task; whoever is given one, or gives them, sees no contents.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import CharField, Count, Q, QuerySet, UUIDField
from django.db.models.functions import Cast, Substr
from django.utils.translation import gettext as _

from dialogs.common.errors import in_words
from dialogs.llms.guard import may_be_guarded
from dialogs.models import LLM, Agent, Dialog
from dialogs.turns.reads.loops import circle_in_words
from dominds.prepared import prepared
from health.models import CleanupTask, ContextEvent

MOST_AGENTS = 20
MOST_DAYS = 60
Rows = list[tuple[str, int]]
# The date in UTC, in which both databases keep moments: SQLite would ask Python for each row's.
DAY = Substr(Cast("happened_at", CharField()), 1, 10)
# What a page or a file needs of an event and of what it points to: a run's view may be long.
SHOWN = (
    *("code", "happened_at", "estimated", "limit", "facts", "dialog__title", "agent__name", "agent__slug"),
    *("llm__model_id", "llm__provider__name", "run__reason", "run__why"),
)


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Empty and None: whatever it is."""

    code: str = ""
    agent_id: int | None = None
    llm_id: int | None = None
    since: datetime | None = None

    def of(self, events: QuerySet[ContextEvent]) -> QuerySet[ContextEvent]:
        wanted = {
            "code": self.code,
            "agent": self.agent_id,
            "llm": self.llm_id,
            "happened_at__gte": self.since,
        }
        return events.filter(**{name: value for name, value in wanted.items() if value})


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Events of all people, counted by kind, agent and day. No text of any dialog."""

    by_code: Rows
    by_agent: Rows
    # Days of UTC, the newest first.
    by_day: Rows


def events_of(user: User, wanted: Filter, *, before: int | None = None) -> QuerySet[ContextEvent]:
    """The events of a person's own dialogs, the newest first; older than the event `before`."""
    events = wanted.of(ContextEvent.objects.filter(owner=user)).order_by("-happened_at", "-pk")
    last = ContextEvent.objects.filter(owner=user, pk=before).first() if before else None
    if last is not None:
        same = Q(happened_at=last.happened_at, pk__gte=last.pk)
        events = events.filter(happened_at__lte=last.happened_at).exclude(same)
    return events.select_related("dialog", "agent", "llm__provider", "run").only(*SHOWN)


def counts_of_all(wanted: Filter) -> Counts:
    events = wanted.of(ContextEvent.objects.order_by())
    return Counts(
        by_code=_counted(events, "code", "-count", "code"),
        by_agent=_by_agent(events),
        by_day=_counted(events.annotate(day=DAY), "day", "-day", most=MOST_DAYS),
    )


def _counted(events: QuerySet[ContextEvent], name: str, *order: str, most: int | None = None) -> list[tuple[Any, int]]:
    return list(events.values_list(name).annotate(count=Count("*")).order_by(*order)[:most])


def _by_agent(events: QuerySet[ContextEvent]) -> Rows:
    """Counted by key first: a hundred thousand names are slow to group by."""
    counts = _counted(events, "agent", "-count", "agent", most=MOST_AGENTS)
    names = dict(Agent.objects.filter(pk__in=[key for key, _count in counts if key]).values_list("pk", "name"))
    return [(names.get(key, ""), count) for key, count in counts]


def agents_to_choose(found: QuerySet[Any], *, asked: int) -> QuerySet[Agent]:
    """The agents that rows of `found` name, and the one that is `asked` for."""
    return Agent.objects.filter(_occurs("agent", found) | Q(pk=asked), is_direct=False).only("name")


def llms_to_choose(found: QuerySet[Any], *, asked: int = 0) -> QuerySet[LLM]:
    """The LLMs that rows of `found` name, and the one that is `asked` for."""
    used = LLM.objects.filter(_occurs("llm", found) | Q(pk=asked))
    return used.select_related("provider").only("model_id", "provider__name")


def codes_to_choose(found: QuerySet[Any], *, asked: str) -> list[tuple[str, str]]:
    """The kinds of events that were `found`, with their labels."""
    there = {asked, *found.order_by().values_list("code", flat=True).distinct()}
    return [(code, str(label)) for code, label in ContextEvent.Code.choices if code in there]


def _occurs(name: str, found: QuerySet[Any]) -> Q:
    """`found` is read once. Asked whether each LLM is in it, PostgreSQL walked through everybody's for each that nobody
    uses."""
    return Q(pk__in=found.order_by().values(name))


def cause_of(event: ContextEvent) -> str:
    """Why an event happened, where more is known than its code says; in the reader's language."""
    if event.code == ContextEvent.Code.LOOP_DETECTED:
        return " ".join(circle_in_words(event.facts))
    told = event.facts.get("why") or event.facts.get("reason") or (event.run.told if event.run else "")
    if told:
        return in_words(told)
    if event.facts.get("cause"):
        return str(event.facts["cause"])
    return _("The provider’s own words are in the dialog.") if event.code == "PROVIDER_OVERFLOW" else ""


def tasks_for(user: User) -> QuerySet[CleanupTask]:
    """Staff give tasks to people, so they see that there are some."""
    found = CleanupTask.objects.select_related("dialog__agent", "dialog__owner", "assignee", "closed_by")
    return found if user.is_staff else found.filter(Q(dialog__owner=user) | Q(assignee=user))


def has_open_task(dialog: Dialog) -> bool:
    """Whether a cleanup task of this dialog is open. Without a guard there is none."""
    return may_be_guarded(dialog) and bool(_open_tasks(dialog.pk))


@prepared(UUIDField())
def _open_tasks(dialog_id: Any) -> QuerySet[CleanupTask, Any]:
    return CleanupTask.objects.filter(dialog=dialog_id, closed_at=None).order_by().values_list("pk")[:1]


def assignable(task: CleanupTask) -> QuerySet[User]:
    """The people who can be given a task: the dialog's owner and staff."""
    people = User.objects.filter(Q(is_staff=True) | Q(pk=task.dialog.owner_id), is_active=True)
    return people.order_by("username")
