"""The addresses below one dialog. Its page and what happens on it are in `dialogs.pages.views.dialog`."""

from __future__ import annotations

from django.urls import include, path

from dialogs.pages.views import courses, dialog, notebook, steering
from dialogs.sample import views as sample
from dialogs.transcript.views import attachments

urlpatterns = [
    path("", dialog.page, name="dialog"),
    path("tour/", sample.step, name="tour_step"),
    path("send/", dialog.send, name="dialog_send"),
    path("retry/", dialog.retry, name="dialog_retry"),
    path("stop/", dialog.stop, name="dialog_stop"),
    path("llm/", dialog.set_llm, name="dialog_llm"),
    path("messages/<int:message_id>/edit/", dialog.edit, name="dialog_edit"),
    path("messages/<int:message_id>/edit/form/", dialog.edit_form, name="dialog_edit_form"),
    path("messages/<int:message_id>/attachments/<int:place>/", attachments.image, name="message_image"),
    path("messages/<int:message_id>/show/", dialog.branch, name="dialog_branch"),
    path("queued/<int:queued_id>/cancel/", dialog.cancel_queued, name="dialog_cancel_queued"),
    path("courses/<int:number>/", courses.course, name="dialog_course"),
    path("courses/<int:number>/handover/", steering.handover, name="dialog_handover"),
    path("courses/<int:number>/back/", steering.course_back, name="dialog_course_back"),
    path("calls/<int:call_id>/", courses.result, name="dialog_call"),
    path("course/", steering.course_new, name="dialog_course_new"),
    path("questions/<int:question_id>/answer/", steering.answer, name="dialog_answer"),
    path("settings/", steering.settings, name="dialog_settings"),
    path("goal/", steering.goal, name="dialog_goal"),
    path("own-tools/", steering.own_tools, name="dialog_own_tools"),
    path("language/", steering.language, name="dialog_language"),
    path("compacted-by-itself/", steering.compaction, name="dialog_compaction"),
    path("pause/", steering.pause, name="dialog_pause"),
    path("go-on/", steering.go_on, name="dialog_go_on"),
    path("reminders/", notebook.add, name="reminder_add"),
    path("reminders/<int:number>/edit/", notebook.edit, name="reminder_edit"),
    path("reminders/<int:number>/remove/", notebook.remove, name="reminder_remove"),
    path("reminders/<int:number>/restore/", notebook.restore, name="reminder_restore"),
    path("reminders/<int:number>/move/", notebook.move, name="reminder_move"),
    path("taskdoc/", notebook.taskdoc, name="taskdoc_write"),
    path("run/", steering.run_start, name="dialog_run_start"),
    path("run/end/", steering.run_end, name="dialog_run_end"),
    path("", include("dialogs.pages.urls_archive")),
    path("", include("dialogs.pages.urls_compaction")),
    path("", include("dialogs.pages.urls_context")),
]
