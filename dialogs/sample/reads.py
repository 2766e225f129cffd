"""What the tour of a sample says at each of its stops, and who can play it."""

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
class Said:
    """One stop: a sentence, its button's words, and what it speaks of: selectors, the first that finds something."""

    words: Promise
    label: Promise
    beside: str


SAID: dict[str, Said] = {
    Stop.METER: Said(
        words=_(
            "This day of work was written for you to try; the meter shows how much of the model’s window its last "
            "request filled, as the server reported it."
        ),
        label=_("Ask one thing more"),
        beside="#meter",
    ),
    Stop.RISE: Said(
        words=_("Each answer makes the next request longer, so the meter rises."),
        label=_("Send long notes"),
        beside="#meter",
    ),
    Stop.COMPACTION: Said(
        words=_(
            "With these notes the next request came too near the window, so the conversation is compacted first, phase "
            "by phase and without asking a model."
        ),
        label=_("Next"),
        beside="#compaction-card|.divider",
    ),
    Stop.DIVIDER: Said(
        words=_(
            "From this line on the model sees a shorter version, while for you every message stays where it was said."
        ),
        label=_("Next"),
        beside=".divider",
    ),
    Stop.LOST: Said(
        words=_(
            "What is marked “no longer seen” was left out for the model; your rule and your change of mind still reach "
            "it."
        ),
        label=_("Next"),
        beside=".message-row.removed",
    ),
    Stop.UNDO: Said(
        words=_("Nothing of this is final: Undo shows the model everything again."),
        label=_("Undo"),
        beside=".divider",
    ),
    Stop.REDO: Said(
        words=_("Undone: the model sees every message again, and its next request would be as long as before."),
        label=_("Redo, and show the archive"),
        beside=".divider",
    ),
    Stop.ARCHIVE: Said(
        words=_(
            "Here stands all that the model no longer sees, word for word, with a search and with the details that are "
            "nowhere else."
        ),
        label=_("Bring one message back"),
        beside=".archive-losses|.archive-group > header|h1",
    ),
    Stop.RECALL: Said(
        words=_(
            "Recalled: the model sees this message again, and a model that is offered tools looks such things up by "
            "itself, with the tool “recall”."
        ),
        label=_("Finish"),
        beside=".message-row:has(.pill-pinned)|.divider",
    ),
}
OF_DEMO = _("The demo model is tiny: its answers show the mechanics, not wisdom.")
FAR_FROM_FULL = Said(
    words=_("This model’s window is far from full, so nothing is compacted by itself yet; it can be compacted now."),
    label=_("Compact now"),
    beside="#meter",
)
# From the dialog's own page the archive is a press away.
IN_ARCHIVE = Said(
    words=_("What the model no longer sees has a page of its own."), label=_("Show it"), beside=".divider"
)
NUMBERS = {stop: number for number, stop in enumerate(SAID, start=1)}


@dataclass(frozen=True, kw_only=True)
class Tour:
    """`is_waiting`: the model still answers, or compacts. `note` is said below the words, if anything."""

    stop: str
    said: Said
    is_waiting: bool
    note: Promise | str

    @property
    def number(self) -> int:
        return NUMBERS[self.stop]

    @property
    def leads_away(self) -> bool:
        """The button only leads to the page on which the tour goes on."""
        return self.said is IN_ARCHIVE

    @property
    def of(self) -> int:
        return len(NUMBERS)


def tour_of(dialog: Dialog, *, in_archive: bool = False) -> Tour | None:
    """What is to be shown on the dialog's page, or on its archive's; None: nothing, as in all dialogs but samples."""
    if dialog.tour not in SAID or (in_archive and dialog.tour != Stop.ARCHIVE):
        return None
    is_waiting = dialog.is_busy or is_compacting(dialog)
    note = OF_DEMO if dialog.tour == Stop.RISE and dialog.agent.is_demo else ""
    return Tour(stop=dialog.tour, said=_said(dialog, is_waiting, in_archive), is_waiting=is_waiting, note=note)


def _said(dialog: Dialog, is_waiting: bool, in_archive: bool) -> Said:
    if dialog.tour == Stop.COMPACTION and not is_waiting and newest_run(dialog, Status.APPLIED) is None:
        return FAR_FROM_FULL
    return IN_ARCHIVE if dialog.tour == Stop.ARCHIVE and not in_archive else SAID[dialog.tour]


def is_compacting(dialog: Dialog) -> bool:
    return CompactionRun.objects.filter(dialog=dialog, status__in=(Status.QUEUED, Status.RUNNING)).exists()


def newest_run(dialog: Dialog, status: str) -> CompactionRun | None:
    return CompactionRun.objects.filter(dialog=dialog, status=status).order_by("-pk").first()


def player() -> Agent | None:
    """Who plays a sample: the demo where it runs, since its small window fills soon; else who can answer."""
    ready = [agent for agent in choosable_agents() if not missing_key(agent.llm.provider)]
    return next((agent for agent in ready if agent.is_demo), ready[0] if ready else None)


def own_sample(user: User) -> Dialog | None:
    """The one that this person has at hand."""
    mine = Dialog.objects.filter(owner=user, archived_at=None, trashed_at=None).exclude(tour=Stop.NO_SAMPLE)
    return mine.order_by("-created_at").first()
