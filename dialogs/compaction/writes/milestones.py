"""Milestones: the task of a P1 message is done, and a fresh start may follow, as the settings say.

The mark is taken away with it, so no milestone comes twice, and what is done needs no room any more.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogBusy, InvalidMessage
from dialogs.compaction.writes.manual_compaction import reset
from dialogs.llms.guard import is_off
from dialogs.models import Dialog, MessageMark
from dialogs.transcript.writes.marks import set_priority
from health.compaction.config import AtMilestone
from health.configured import context_config


def complete(*, dialog: Dialog, message_id: int, by: User) -> bool:
    """The task is done. True where a fresh start is to be offered: if it is automatic, also while the agent answers,
    and where nothing is compacted by itself."""
    marks = MessageMark.objects.filter(message__dialog=dialog, message_id=message_id, priority=MessageMark.Priority.P1)
    if not marks.exists():
        raise InvalidMessage(_("Only the task of a P1 message can be done."))
    set_priority(dialog=dialog, message_id=message_id, priority="")
    wanted = context_config().at_milestone
    if wanted is not AtMilestone.AUTOMATIC:
        return wanted is AtMilestone.OFFER
    if is_off(dialog):
        return True
    try:
        reset(dialog=dialog, by=by)
    except DialogBusy:
        return True
    return False
