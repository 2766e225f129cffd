"""The URLs of all pages and actions; `DIALOG` has those of one dialog."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.urls import include, path, register_converter
from django.urls.converters import IntConverter
from django.views.i18n import set_language

from dialogs.api import views as api
from dialogs.compaction import views as context_pages
from dialogs.compaction.settings import views as settings_page
from dialogs.context import views as standing_rules
from dialogs.learning.views import events, insights, what_if
from dialogs.llms import views as connecting
from dialogs.pages.views import compaction, dialog, lists, manage, shell, steering
from dialogs.sample import views as sample


class Number(IntConverter):
    """A number that fits a 64-bit key; with a larger one the database would raise an error, and the page is just
    missing."""

    regex = "[0-9]{1,18}"


register_converter(Number, "number")

# Its page, and what is done in it.
DIALOG = [
    path("", dialog.page, name="dialog"),
    path("tour/", sample.step, name="tour_step"),
    path("send/", dialog.send, name="dialog_send"),
    path("retry/", dialog.retry, name="dialog_retry"),
    path("stop/", dialog.stop, name="dialog_stop"),
    path("llm/", dialog.set_llm, name="dialog_llm"),
    path("messages/<number:message_id>/", dialog.message, name="dialog_message"),
    path("messages/<number:message_id>/edit/", dialog.edit, name="dialog_edit"),
    path("messages/<number:message_id>/edit/form/", dialog.edit_form, name="dialog_edit_form"),
    path("messages/<number:message_id>/attachments/<number:place>/", dialog.image, name="message_image"),
    path("messages/<number:message_id>/show/", dialog.branch, name="dialog_branch"),
    path("queued/<number:queued_id>/cancel/", dialog.cancel_queued, name="dialog_cancel_queued"),
    path("courses/<number:number>/", dialog.course, name="dialog_course"),
    path("courses/<number:number>/handover/", steering.handover, name="dialog_handover"),
    path("courses/<number:number>/back/", steering.course_back, name="dialog_course_back"),
    path("calls/<number:call_id>/", dialog.result, name="dialog_call"),
    path("course/", steering.course_new, name="dialog_course_new"),
    path("questions/<number:question_id>/answer/", steering.answer, name="dialog_answer"),
    path("settings/", steering.settings, name="dialog_settings"),
    path("goal/", steering.goal, name="dialog_goal"),
    path("own-tools/", steering.own_tools, name="dialog_own_tools"),
    path("language/", steering.language, name="dialog_language"),
    path("compacted-by-itself/", steering.compaction, name="dialog_compaction"),
    path("pause/", steering.pause, name="dialog_pause"),
    path("go-on/", steering.go_on, name="dialog_go_on"),
    path("reminders/", steering.add, name="reminder_add"),
    path("reminders/<number:number>/edit/", steering.edit, name="reminder_edit"),
    path("reminders/<number:number>/remove/", steering.remove, name="reminder_remove"),
    path("reminders/<number:number>/restore/", steering.restore, name="reminder_restore"),
    path("reminders/<number:number>/move/", steering.move, name="reminder_move"),
    path("taskdoc/", steering.taskdoc, name="taskdoc_write"),
    path("run/", steering.run_start, name="dialog_run_start"),
    path("run/end/", steering.run_end, name="dialog_run_end"),
    # Its context: compactions, marks, what the model saw.
    path("compaction/", compaction.now, name="compaction_now"),
    path("compaction/reset/", compaction.reset, name="compaction_reset"),
    path("compactions/<number:run_id>/cancel/", compaction.cancel, name="compaction_cancel"),
    path("compactions/<number:run_id>/apply/", compaction.apply, name="compaction_apply"),
    path("compactions/<number:run_id>/discard/", compaction.discard, name="compaction_discard"),
    path("compactions/<number:run_id>/edit/", compaction.edit, name="compaction_edit"),
    path("compactions/<number:run_id>/undo/", compaction.undo, name="compaction_undo"),
    path("compactions/<number:run_id>/redo/", compaction.redo, name="compaction_redo"),
    path("compactions/<number:run_id>/summary/", context_pages.summary, name="compaction_summary"),
    path("compactions/<number:run_id>/seen/", context_pages.run, name="compaction_seen"),
    path("messages/<number:message_id>/compact/", compaction.up_to, name="compaction_up_to"),
    path("messages/<number:message_id>/pin/", dialog.pin, name="message_pin"),
    path("messages/<number:message_id>/priority/", dialog.priority, name="message_priority"),
    path("messages/<number:message_id>/done/", dialog.done, name="message_done"),
    path("generations/<number:generation_id>/seen/", context_pages.generation, name="generation_seen"),
    # What compaction took away, the rules that it carries, and the budget that makes it do so.
    path("archive-of-context/", context_pages.archive, name="dialog_archive_search"),
    path("archive-of-context/<number:message_id>/", context_pages.text, name="dialog_archive_text"),
    path("still-known/", context_pages.still_known_page, name="dialog_still_known"),
    path("rules/", standing_rules.page, name="dialog_rules"),
    path("rules/change/", standing_rules.change, name="dialog_rules_change"),
    path("budget/", context_pages.budget, name="dialog_budget"),
    path("budget/forget-window/", context_pages.forget_window, name="dialog_forget_window"),
    path("messages/<number:message_id>/bring-back/", context_pages.bring_back, name="compaction_bring_back"),
    # Where programs read the state of the context, and where too much is answered to.
    path("context.json", api.as_json, name="dialog_context"),
    path("context/stats", api.stats, name="context_stats"),
    path("context/snapshot", api.snapshot, name="context_snapshot"),
    path("context/messages", api.present, name="context_messages"),
    path("report/", compaction.report, name="dialog_report"),
    path("loop/dismiss/", compaction.no_loop, name="loop_dismiss"),
    path("fresh-start/decline/", compaction.no_fresh_start, name="fresh_start_decline"),
]

urlpatterns = [
    path("login/", shell.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("account/password/", shell.ChangePassword.as_view(), name="password_change"),
    path("welcome/<str:uid>/<str:token>/", shell.welcome, name="welcome"),
    path("", lists.dialog_list, name="dialog_list"),
    path("dialogs/new/", lists.new, name="dialog_new"),
    path("dialogs/import/", manage.bring, name="dialog_import"),
    path("dialogs/sample/", sample.begin, name="sample"),
    path("connect/", connecting.connect, name="connect"),
    path("connect/add/", connecting.connect_add, name="connect_add"),
    path("settings/context/", settings_page.context_settings, name="context_settings"),
    path("settings/context/import/", settings_page.import_settings, name="context_settings_import"),
    path("settings/context/export.yaml", settings_page.take_out, name="context_settings_export"),
    path("settings/context/rewards.jsonl", settings_page.take_out_rewards, name="rewards_export"),
    path("proposals/", insights.proposals, name="proposals"),
    path("proposals/look/", insights.look, name="proposals_look"),
    path("proposals/<number:proposal_id>/", insights.decide, name="proposal_decide"),
    path("settings/keys/", api.api_keys, name="api_keys"),
    path("settings/keys/new/", api.api_key_new, name="api_key_new"),
    path("settings/keys/<number:key_id>/", api.api_key_change, name="api_key_change"),
    path("settings/keys/<number:key_id>/revoke/", api.api_key_revoke, name="api_key_revoke"),
    path("dialogs/<uuid:dialog_id>/rename/", manage.rename, name="dialog_rename"),
    path("dialogs/<uuid:dialog_id>/archive/", manage.archive, name="dialog_archive"),
    path("dialogs/<uuid:dialog_id>/unarchive/", manage.unarchive, name="dialog_unarchive"),
    path("dialogs/<uuid:dialog_id>/trash/", manage.trash, name="dialog_trash"),
    path("dialogs/<uuid:dialog_id>/restore/", manage.restore, name="dialog_restore"),
    path("dialogs/<uuid:dialog_id>/erase/", manage.erase, name="dialog_erase"),
    path("dialogs/<uuid:dialog_id>/export.json", manage.as_json, name="dialog_json"),
    path("dialogs/<uuid:dialog_id>/export.md", manage.as_markdown, name="dialog_markdown"),
    path("dialogs/<uuid:dialog_id>/", include(DIALOG)),
    # What goes wrong with contexts, and what is done about it.
    path("events/", events.events, name="events"),
    path("events/counts/", events.counts, name="events_counts"),
    path("events/export.csv", events.as_csv, name="events_csv"),
    path("events/export.json", events.as_json, name="events_json"),
    path("insights/", insights.insights, name="insights"),
    path("insights/chart/", insights.chart, name="insights_chart"),
    path("insights/what-if/", what_if.what_if, name="what_if"),
    path("insights/what-if/<number:what_if_id>/", what_if.shown, name="what_if_shown"),
    path("insights/what-if/<number:what_if_id>/cancel/", what_if.cancel, name="what_if_cancel"),
    path("cleanup/", compaction.cleanup, name="cleanup"),
    path("cleanup/<number:task_id>/", compaction.change, name="cleanup_change"),
    path("preferences/compaction/", shell.compaction_display, name="compaction_display"),
    # Both also serve the login page.
    path("preferences/theme/", shell.set_theme, name="set_theme"),
    path("preferences/language/", login_not_required(set_language), name="set_language"),
]
