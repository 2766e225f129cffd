"""The addresses below one dialog that are about its context: compactions, marks, what the model saw."""

from __future__ import annotations

from django.urls import path

from dialogs.compaction.views import sent_messages
from dialogs.pages.views import compaction, marks

urlpatterns = [
    path("compaction/", compaction.now, name="compaction_now"),
    path("compaction/reset/", compaction.reset, name="compaction_reset"),
    path("compactions/<int:run_id>/cancel/", compaction.cancel, name="compaction_cancel"),
    path("compactions/<int:run_id>/apply/", compaction.apply, name="compaction_apply"),
    path("compactions/<int:run_id>/discard/", compaction.discard, name="compaction_discard"),
    path("compactions/<int:run_id>/edit/", compaction.edit, name="compaction_edit"),
    path("compactions/<int:run_id>/undo/", compaction.undo, name="compaction_undo"),
    path("compactions/<int:run_id>/redo/", compaction.redo, name="compaction_redo"),
    path("compactions/<int:run_id>/summary/", sent_messages.summary, name="compaction_summary"),
    path("compactions/<int:run_id>/seen/", sent_messages.run, name="compaction_seen"),
    path("messages/<int:message_id>/compact/", compaction.up_to, name="compaction_up_to"),
    path("messages/<int:message_id>/pin/", marks.pin, name="message_pin"),
    path("messages/<int:message_id>/priority/", marks.priority, name="message_priority"),
    path("messages/<int:message_id>/done/", marks.done, name="message_done"),
    path("generations/<int:generation_id>/seen/", sent_messages.generation, name="generation_seen"),
]
