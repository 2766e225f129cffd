"""The texts of a sample's tour, and the agent for a sample."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dialogs.llms.reads import choosable_agents, missing_key
from dialogs.models import Agent, Dialog
from dialogs.models.dialog import Stop
from health.models import CompactionRun

Status = CompactionRun.Status


@dataclass(frozen=True, kw_only=True)
class TourStop:
    """One stop: a sentence, the button's label, and the element that it is about: CSS selectors separated by |, of
    which the first that matches counts."""

    words: Promise
    label: Promise
    beside: str


STOPS: dict[str, TourStop] = {
    Stop.METER: TourStop(
        words=_(
            "This day of work was written for you to try; the meter shows how much of the model’s window its last "
            "request filled, as the server reported it."
        ),
        label=_("Ask one thing more"),
        beside="#meter",
    ),
    Stop.RISE: TourStop(
        words=_("Each answer makes the next request longer, so the meter rises."),
        label=_("Send long notes"),
        beside="#meter",
    ),
    Stop.COMPACTION: TourStop(
        words=_(
            "With these notes the next request came too near the window, so the conversation is compacted first, phase "
            "by phase and without asking a model."
        ),
        label=_("Next"),
        beside="#compaction-card|.divider",
    ),
    Stop.DIVIDER: TourStop(
        words=_(
            "From this line on the model sees a shorter version, while for you every message stays where it was said."
        ),
        label=_("Next"),
        beside=".divider",
    ),
    Stop.LOST: TourStop(
        words=_(
            "What is marked “no longer seen” was left out for the model; your rule and your change of mind still reach "
            "it."
        ),
        label=_("Next"),
        beside=".message-row.removed",
    ),
    Stop.UNDO: TourStop(
        words=_("Nothing of this is final: Undo shows the model everything again."),
        label=_("Undo"),
        beside=".divider",
    ),
    Stop.REDO: TourStop(
        words=_("Undone: the model sees every message again, and its next request would be as long as before."),
        label=_("Redo, and show the archive"),
        beside=".divider",
    ),
    Stop.ARCHIVE: TourStop(
        words=_(
            "Here stands all that the model no longer sees, word for word, with a search and with the details that are "
            "nowhere else."
        ),
        label=_("Bring one message back"),
        beside=".archive-losses|.archive-group > header|h1",
    ),
    Stop.RECALL: TourStop(
        words=_(
            "Recalled: the model sees this message again, and a model that is offered tools looks such things up by "
            "itself, with the tool “recall”."
        ),
        label=_("Finish"),
        beside=".message-row:has(.pill-pinned)|.divider",
    ),
}
DEMO_NOTE = _("The demo model is tiny: its answers show the mechanics, not wisdom.")
NOTHING_COMPACTED = TourStop(
    words=_("This model’s window is far from full, so nothing is compacted by itself yet; it can be compacted now."),
    label=_("Compact now"),
    beside="#meter",
)
# Shown at the stop ARCHIVE on the dialog's own page: the tour goes on on the archive's.
TO_ARCHIVE = TourStop(
    words=_("What the model no longer sees has a page of its own."), label=_("Show it"), beside=".divider"
)
NUMBERS = {stop: number for number, stop in enumerate(STOPS, start=1)}


@dataclass(frozen=True, kw_only=True)
class Tour:
    """What the page shows. `is_waiting`: an answer or compaction is under way. `note`: a line below the words."""

    stop: str
    said: TourStop
    is_waiting: bool
    note: Promise | str

    @property
    def number(self) -> int:
        return NUMBERS[self.stop]

    @property
    def leads_away(self) -> bool:
        """The button is a link to the page on which the tour goes on."""
        return self.said is TO_ARCHIVE

    @property
    def of(self) -> int:
        return len(NUMBERS)


def tour_of(dialog: Dialog, *, in_archive: bool = False) -> Tour | None:
    """The tour for the dialog's page, or for its archive's. None where none is to be shown."""
    if dialog.tour not in STOPS or (in_archive and dialog.tour != Stop.ARCHIVE):
        return None
    is_waiting = dialog.is_busy or is_compacting(dialog)
    note = DEMO_NOTE if dialog.tour == Stop.RISE and dialog.agent.is_demo else ""
    return Tour(stop=dialog.tour, said=_said(dialog, is_waiting, in_archive), is_waiting=is_waiting, note=note)


def _said(dialog: Dialog, is_waiting: bool, in_archive: bool) -> TourStop:
    if dialog.tour == Stop.COMPACTION and not is_waiting and newest_run(dialog, Status.APPLIED) is None:
        return NOTHING_COMPACTED
    return TO_ARCHIVE if dialog.tour == Stop.ARCHIVE and not in_archive else STOPS[dialog.tour]


def is_compacting(dialog: Dialog) -> bool:
    return CompactionRun.objects.filter(dialog=dialog, status__in=(Status.QUEUED, Status.RUNNING)).exists()


def newest_run(dialog: Dialog, status: str) -> CompactionRun | None:
    return CompactionRun.objects.filter(dialog=dialog, status=status).order_by("-pk").first()


def player() -> Agent | None:
    """The agent for a sample: the demo's, whose small window fills soon; else any whose provider has its key."""
    ready = [agent for agent in choosable_agents() if not missing_key(agent.llm.provider)]
    return next((agent for agent in ready if agent.is_demo), ready[0] if ready else None)


def own_sample(user: User) -> Dialog | None:
    """This person's newest sample, not archived or in the trash."""
    mine = Dialog.objects.filter(owner=user, archived_at=None, trashed_at=None).exclude(tour=Stop.NO_SAMPLE)
    return mine.order_by("-created_at").first()
