"""The first page: a person's dialogs, those that need a person first.

Three queries, however many dialogs there are: a few columns of all of them, which are sorted, counted and filtered
here; then the dialogs on the page, and their readings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import BigIntegerField, Exists, F, OuterRef, Q, QuerySet, Subquery, UUIDField
from django.db.models.functions import JSONObject, Substr
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from dialogs.common.errors import headline
from dialogs.models import AutonomousRun, Dialog, Generation, Question
from dialogs.models.dialog import PausedBy
from dialogs.models.message import Role
from dialogs.transcript.reads.dialogs import SHELVES, Shelf, left_by, meters_of, on_shelf, with_newest
from dominds.prepared import Many, Prepared, prepared
from health.models import CompactionRun
from health.selectors import Meter

# What is going on in a dialog; the strip counts them, and the list may be cut to one.
RUNNING, WAITING, PAUSED, FAILED = "running", "waiting", "paused", "failed"
DOING = (WAITING, FAILED, PAUSED, RUNNING)
# The order: those that need a person first; within one rank the last active first.
RANKS = {WAITING: 0, FAILED: 1, PAUSED: 1, "critical": 2, RUNNING: 3, "caution": 4}
LEVELS = ("critical", "caution", "healthy", "unknown")
WORDS_SHOWN = 240
# The columns of a dialog that no list shows, and that may be long.
LARGE = ("taskdoc", "standing_rules", "task_snapshot")


@dataclass(frozen=True, kw_only=True)
class DialogOverview:
    """By which a dialog is sorted, counted and filtered. `level` is "" before its first reading."""

    pk: UUID
    active_at: datetime
    level: str
    doing: str
    agent: tuple[int, str]
    llm: tuple[int, str]
    client: tuple[int, str] | None

    @property
    def rank(self) -> int:
        return min(RANKS.get(self.doing, 5), RANKS.get(self.level, 5))


@dataclass(frozen=True, kw_only=True)
class CompactionSaving:
    """Of the newest compaction in force; both numbers are estimates."""

    before: int
    after: int

    @property
    def tokens(self) -> int:
        return self.before - self.after


@dataclass(frozen=True, kw_only=True)
class DashboardRow:
    """One dialog as a row. `key` changes whenever the row's HTML would, except for relative times."""

    dialog: Dialog
    glance: DialogOverview
    meter: Meter
    doing: str
    last_words: str
    freed: CompactionSaving | None

    @property
    def key(self) -> str:
        return repr((self.dialog.title, self.glance, self.meter, self.doing, self.last_words, self.freed))

    @property
    def level(self) -> str:
        """ "" before the first reading."""
        return self.glance.level

    @property
    def has_meter(self) -> bool:
        """Can the meter show anything: a measured number, or at least the window?"""
        return self.meter.prompt_tokens is not None or self.meter.context_window is not None

    @property
    def age(self) -> str:
        """Relative, because the server does not know the reader's time zone."""
        since = self.dialog.active_at
        if timezone.now() - since < timedelta(minutes=1):
            return _("just now")
        return _("%(age)s ago") % {"age": timesince(since, depth=1)}


class OverviewColumns(NamedTuple):
    """The columns of a dialog for its DialogOverview."""

    pk: UUID
    active_at: datetime
    wake_seq: int
    handled_seq: int
    paused_by: str
    newest: dict[str, Any] | None
    leaf_course: int | None
    asks: bool
    has_run: bool
    last: dict[str, Any] | None
    agent_id: int
    agent__name: str
    llm_id: int
    llm__provider__name: str
    llm__model_id: str
    llm__context_length: int | None
    llm__input_length: int | None
    client__api_key_id: int | None
    client__api_key__name: str


def overviews(found: QuerySet[Dialog], *, newest_first: bool = False) -> list[DialogOverview]:
    """All of these dialogs, those that need a person first."""
    return _in_order(_overview_of(found), newest_first=newest_first)


def overviews_on(shelf: Shelf, owner_id: int, *, newest_first: bool) -> list[DialogOverview]:
    """All of a person's dialogs on a shelf."""
    return _in_order(_on_shelves[shelf](owner_id), newest_first=newest_first)


def _in_order(rows: Iterable[tuple[Any, ...]], *, newest_first: bool) -> list[DialogOverview]:
    told = [_overview(OverviewColumns._make(row)) for row in rows]
    return told if newest_first else sorted(told, key=lambda glance: glance.rank)


def _overview_of(found: QuerySet[Dialog]) -> QuerySet[Dialog, tuple[Any, ...]]:
    rows = with_newest(found).annotate(
        asks=Exists(_pending()),
        has_run=Exists(AutonomousRun.objects.filter(dialog=OuterRef("pk"), ended_at=None)),
        last=_newest_generation(status="status"),
    )
    return rows.order_by("-active_at").values_list(*OverviewColumns._fields)


def _prepared_on(shelf: Shelf) -> Prepared[tuple[Any, ...]]:
    return prepared(BigIntegerField())(lambda owner_id: _overview_of(on_shelf(owner_id, shelf)))


_on_shelves = {shelf: _prepared_on(shelf) for shelf in SHELVES}


def _overview(row: OverviewColumns) -> DialogOverview:
    llm = f"{row.llm__provider__name}/{row.llm__model_id}"
    key = row.client__api_key_id
    return DialogOverview(
        pk=row.pk,
        active_at=row.active_at,
        level=_level(row, llm),
        doing=_kind(row),
        agent=(row.agent_id, row.agent__name),
        llm=(row.llm_id, llm),
        client=(key, row.client__api_key__name) if key else None,
    )


def _level(row: OverviewColumns, llm: str) -> str:
    """The level of the newest reading; unknown if context or window have changed since."""
    newest, window = row.newest, row.llm__context_length or row.llm__input_length
    if not newest:
        return ""
    is_other = newest["llm"] != llm or left_by(newest, row.leaf_course) or window not in (None, newest["window"])
    return "unknown" if is_other else str(newest["level"])


def _kind(row: OverviewColumns) -> str:
    if row.wake_seq > row.handled_seq:
        return RUNNING
    if row.asks:
        return WAITING
    if row.paused_by and (row.has_run or row.paused_by not in (PausedBy.PERSON, PausedBy.FAILURE)):
        return PAUSED
    return FAILED if row.last and row.last["status"] == Generation.Status.FAILED else ""


def _pending() -> QuerySet[Question]:
    return Question.objects.filter(dialog=OuterRef("pk"), status=Question.Status.PENDING)


def _newest_generation(**columns: str) -> Subquery:
    made = Generation.objects.filter(dialog=OuterRef("pk")).order_by("-pk")
    return Subquery(made.values(told=JSONObject(**columns))[:1])


def strip(all_of_them: Sequence[DialogOverview]) -> Iterator[tuple[str, str, int]]:
    """The counts for the strip, without zeros: (`doing` or `level`, its word, how many dialogs)."""
    for kind, words in (("doing", DOING), ("level", LEVELS)):
        counts = Counter(getattr(one, kind) for one in all_of_them)
        yield from ((kind, word, counts[word]) for word in words if counts[word])


def choices(all_of_them: Iterable[DialogOverview]) -> dict[str, list[tuple[int, str]]]:
    """The agents, LLMs and clients to filter by, in alphabetical order."""
    found = {
        "agent": {one.agent for one in all_of_them},
        "llm": {one.llm for one in all_of_them},
        "client": {one.client for one in all_of_them if one.client},
    }
    return {name: sorted(values, key=lambda value: value[1].lower()) for name, values in found.items()}


def shown(some: Sequence[DialogOverview]) -> list[DashboardRow]:
    """The rows for these dialogs, in their order."""
    found = {row.pk: row for row in _as_rows([one.pk for one in some])}
    meters = meters_of(list(found.values()))
    return [_shown(found[one.pk], one, meters[one.pk]) for one in some if one.pk in found]


@prepared(Many(UUIDField()))
def _as_rows(ids: Any) -> QuerySet[Dialog]:
    wanted = Dialog.objects.filter(pk__in=ids).defer(*LARGE).order_by()
    return with_newest(wanted.select_related("agent", "llm__provider", "llm__bounds", "client__api_key")).annotate(
        leaf_role=F("current_leaf__role"),
        leaf_text=Substr("current_leaf__content", 1, WORDS_SHOWN + 1),
        course_number=F("current_leaf__course__number"),
        asked=Subquery(_pending().values(told=Substr("text", 1, WORDS_SHOWN))[:1]),
        run=Subquery(
            AutonomousRun.objects.filter(dialog=OuterRef("pk"), ended_at=None).values(
                told=JSONObject(made="generations", most="max_generations")
            )[:1]
        ),
        last=_newest_generation(error="error_code", retry_at="retry_at"),
        compacting=_runs(Q(status__in=("queued", "running")), now="tokens_now", limit="limit_tokens"),
        freed=_runs(
            Q(status="applied", estimated_after__isnull=False), before="estimated_before", after="estimated_after"
        ),
    )


def _runs(which: Q, **columns: str) -> Subquery:
    runs = CompactionRun.objects.filter(which, dialog=OuterRef("pk")).order_by("-pk")
    return Subquery(runs.values(told=JSONObject(**columns))[:1])


def _shown(row: Any, glance: DialogOverview, meter: Meter) -> DashboardRow:
    freed = row.freed and row.freed["before"] and CompactionSaving(**row.freed)
    return DashboardRow(
        dialog=row,
        glance=glance,
        meter=meter,
        doing=_doing(row, glance),
        last_words=_last_words(row),
        freed=freed if freed and freed.tokens > 0 else None,
    )


def _doing(row: Any, glance: DialogOverview) -> str:
    """What the dialog does now, in words; empty where it rests."""
    on_its_own = _on_its_own(row) if row.run else ""
    return " · ".join(part for part in (_now(row, glance), on_its_own) if part)


def _now(row: Any, glance: DialogOverview) -> str:
    if row.compacting:
        return _compacting(row.compacting)
    if glance.doing == WAITING:
        return _("waits for your answer: %(question)s") % {"question": " ".join((row.asked or "").split())}
    if glance.doing == PAUSED:
        return _("paused by %(what)s") % {"what": PausedBy(row.paused_by).label}
    if glance.doing == FAILED:
        return str(headline(row.last["error"]))
    if glance.doing != RUNNING:
        return ""
    if row.place_in_line:
        return _("number %(place)s in line") % {"place": row.place_in_line}
    return _("trying again soon") if row.last and row.last["retry_at"] else _("answering")


def _compacting(run: dict[str, Any]) -> str:
    if run["now"] is None or not run["limit"]:
        return _("compacting")
    return _("compacting, now at %(percent)s %% of its limit") % {"percent": round(100 * run["now"] / run["limit"])}


def _on_its_own(row: Any) -> str:
    return _("generation %(made)s of %(most)s, course %(course)s") % {
        "made": row.run["made"],
        "most": row.run["most"],
        "course": row.course_number or 1,
    }


def _last_words(row: Any) -> str:
    """The last message of a person or the agent; not tool results or messages of Dominds."""
    if row.leaf_role not in (Role.USER, Role.ASSISTANT):
        return ""
    words = " ".join((row.leaf_text or "").split())
    return words if len(words) <= WORDS_SHOWN else words[:WORDS_SHOWN] + "…"
