"""Adds a sample dialog, and does what the button of each stop of its tour says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from dialogs.compaction.writes import manual_compaction, view_changes
from dialogs.compaction.writes.manual_compaction import bring_back
from dialogs.models import Agent, Dialog, Message
from dialogs.models.dialog import Stop
from dialogs.models.message import Role
from dialogs.sample.reads import Status, newest_run
from dialogs.transcript.reads.archived_messages import archived_ids
from dialogs.transcript.writes.dialog_row import lock, save
from dialogs.transfer import import_dialog, parse_json
from dialogs.turns.writes.messages import post_message

HERE = Path(__file__).parent
FALLBACK = "en"


@transaction.atomic
def begin_sample(*, owner: User, agent: Agent) -> Dialog:
    """A sample in the person's present language. All its times are shifted so that it ends now."""
    wanted = HERE / f"{translation.get_language()}.json"
    file: Any = parse_json((wanted if wanted.exists() else HERE / f"{FALLBACK}.json").read_bytes())
    later = timezone.now() - datetime.fromisoformat(file["exported_at"])
    data = _moved(file, later) | {"agent": agent.slug, "llm": agent.llm.slug}
    dialog = import_dialog(owner=owner, data=data, agent=agent)
    dialog.tour = Stop.METER
    save(dialog, "tour")
    return dialog


def _moved(value: Any, later: timedelta) -> Any:
    """The value with all its times shifted by `later`."""
    if isinstance(value, list):
        return [_moved(one, later) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: (datetime.fromisoformat(one) + later).isoformat()
        if name.endswith("_at") and isinstance(one, str)
        else _moved(one, later)
        for name, one in value.items()
    }


def go_on(*, dialog: Dialog, stop: str, by: User) -> Stop:
    """Go from this stop to the next. Does nothing if the tour is at another stop (the button was pressed twice). Raises
    DialogBusy while the agent works."""
    if stop == Stop.COMPACTION == dialog.tour and newest_run(dialog, Status.APPLIED) is None:
        manual_compaction.request(dialog=dialog, by=by, is_asked=False)
        return Stop.COMPACTION
    with transaction.atomic():
        row = lock(dialog)
        if row.tour == stop and stop in STEPS:
            step, then = STEPS[stop]
            step(view_changes.resting(row), by)
            row = lock(dialog)
            row.tour = then
            save(row, "tour")
    return Stop(row.tour)


@transaction.atomic
def close(*, dialog: Dialog) -> None:
    row = lock(dialog)
    row.tour = Stop.CLOSED if row.tour else Stop.NO_SAMPLE
    save(row, "tour")


def _look(row: Dialog, by: User) -> None:
    """The stop only shows its text."""


def _ask(row: Dialog, by: User) -> None:
    with translation.override(row.work_language):
        post_message(dialog=row, content=_("What shall I tell Dana about the index?"))


def _send_notes(row: Dialog, by: User) -> None:
    """Send long notes, which together with the history do not fit a small window."""
    if newest_run(row, Status.APPLIED) is None:
        with translation.override(row.work_language):
            post_message(dialog=row, content=_notes())


def _notes() -> str:
    return _(
        "Here are my notes of the afternoon, make one sentence of them. The index was built without a lock, nobody "
        "noticed it. At three o'clock Ben asked why the invoice list is slow; we looked at it together and saw 900 "
        "previews that are loaded at once, most of which nobody ever scrolls to. He proposes to load 20 and the rest "
        "as one scrolls; I like it, but not this week. The empty export needs a header, a small thing, Mia does it "
        "tomorrow morning. Production gets the index on Wednesday at 07:00, before the shops open, and Ben watches the "
        "disk while it is built, for it may take 40 GB. If anything goes wrong, we drop it again; that takes a second. "
        "On Wednesday evening I measure the page once more and write both numbers into the report, with a picture. Mia "
        "would like to hear in the team's round how we found it."
    )


def _undo(row: Dialog, by: User) -> None:
    if run := newest_run(row, Status.APPLIED):
        view_changes.undo(dialog=row, run_id=run.pk, by=by)


def _redo(row: Dialog, by: User) -> None:
    """Redo the undone compaction, unless the person has done so."""
    run = newest_run(row, Status.UNDONE)
    if run and newest_run(row, Status.APPLIED) is None:
        view_changes.redo(dialog=row, run_id=run.pk, by=by)


def _recall(row: Dialog, by: User) -> None:
    """Bring back the shortest archived message, which surely fits."""
    said = Message.objects.filter(pk__in=archived_ids(row.pk), role__in=(Role.USER, Role.ASSISTANT), calls=None)
    shortest = min(said.exclude(content=""), key=lambda message: len(message.content), default=None)
    if shortest:
        bring_back(dialog=row, message_id=shortest.pk, by=by)


STEPS: dict[str, tuple[Callable[[Dialog, User], None], Stop]] = {
    Stop.METER: (_ask, Stop.RISE),
    Stop.RISE: (_send_notes, Stop.COMPACTION),
    Stop.COMPACTION: (_look, Stop.DIVIDER),
    Stop.DIVIDER: (_look, Stop.LOST),
    Stop.LOST: (_look, Stop.UNDO),
    Stop.UNDO: (_undo, Stop.REDO),
    Stop.REDO: (_redo, Stop.ARCHIVE),
    Stop.ARCHIVE: (_recall, Stop.RECALL),
    Stop.RECALL: (_look, Stop.CLOSED),
}
