"""The addresses of what compaction took away, of the rules that it carries, and of the budget that makes it do so."""

from __future__ import annotations

from django.urls import path

from dialogs.compaction.views import archive, budget, still_known
from dialogs.context.views import standing_rules

urlpatterns = [
    path("archive-of-context/", archive.archive, name="dialog_archive_search"),
    path("archive-of-context/<int:message_id>/", archive.text, name="dialog_archive_text"),
    path("still-known/", still_known.page, name="dialog_still_known"),
    path("rules/", standing_rules.page, name="dialog_rules"),
    path("rules/change/", standing_rules.change, name="dialog_rules_change"),
    path("budget/", budget.budget, name="dialog_budget"),
    path("budget/forget-window/", budget.forget_window, name="dialog_forget_window"),
    path("messages/<int:message_id>/bring-back/", archive.bring_back, name="compaction_bring_back"),
]
