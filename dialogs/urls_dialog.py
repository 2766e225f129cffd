"""The addresses below one dialog. Its page and what happens on it are in `dialogs.views.dialog`."""

from __future__ import annotations

from django.urls import path

from dialogs.views import dialog

urlpatterns = [
    path("", dialog.page, name="dialog"),
    path("send/", dialog.send, name="dialog_send"),
    path("retry/", dialog.retry, name="dialog_retry"),
    path("stop/", dialog.stop, name="dialog_stop"),
    path("llm/", dialog.set_llm, name="dialog_llm"),
    path("messages/<int:message_id>/edit/", dialog.edit, name="dialog_edit"),
    path("messages/<int:message_id>/show/", dialog.branch, name="dialog_branch"),
    path("queued/<int:queued_id>/cancel/", dialog.cancel_queued, name="dialog_cancel_queued"),
]
