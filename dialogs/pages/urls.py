"""The pages and actions of the dialogs app. What happens inside one dialog is in `urls_dialog.py`."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.i18n import set_language

from dialogs.api.views import api_keys
from dialogs.compaction.views import context_settings
from dialogs.learning.views import proposals
from dialogs.llms.views import connect
from dialogs.pages.views import lists, manage, preferences
from dialogs.sample import views as sample

urlpatterns = [
    path("", lists.dialog_list, name="dialog_list"),
    path("dialogs/new/", lists.new, name="dialog_new"),
    path("dialogs/import/", manage.bring, name="dialog_import"),
    path("dialogs/sample/", sample.begin, name="sample"),
    path("connect/", connect.connect, name="connect"),
    path("connect/add/", connect.connect_add, name="connect_add"),
    path("settings/context/", context_settings.context_settings, name="context_settings"),
    path("settings/context/import/", context_settings.bring, name="context_settings_import"),
    path("settings/context/export.yaml", context_settings.take_out, name="context_settings_export"),
    path("settings/context/rewards.jsonl", context_settings.take_out_rewards, name="rewards_export"),
    path("proposals/", proposals.proposals, name="proposals"),
    path("proposals/look/", proposals.look, name="proposals_look"),
    path("proposals/<int:proposal_id>/", proposals.decide, name="proposal_decide"),
    path("settings/keys/", api_keys.api_keys, name="api_keys"),
    path("settings/keys/new/", api_keys.api_key_new, name="api_key_new"),
    path("settings/keys/<int:key_id>/", api_keys.api_key_change, name="api_key_change"),
    path("settings/keys/<int:key_id>/revoke/", api_keys.api_key_revoke, name="api_key_revoke"),
    path("dialogs/<uuid:dialog_id>/rename/", manage.rename, name="dialog_rename"),
    path("dialogs/<uuid:dialog_id>/archive/", manage.archive, name="dialog_archive"),
    path("dialogs/<uuid:dialog_id>/unarchive/", manage.unarchive, name="dialog_unarchive"),
    path("dialogs/<uuid:dialog_id>/trash/", manage.trash, name="dialog_trash"),
    path("dialogs/<uuid:dialog_id>/restore/", manage.restore, name="dialog_restore"),
    path("dialogs/<uuid:dialog_id>/erase/", manage.erase, name="dialog_erase"),
    path("dialogs/<uuid:dialog_id>/export.json", manage.as_json, name="dialog_json"),
    path("dialogs/<uuid:dialog_id>/export.md", manage.as_markdown, name="dialog_markdown"),
    path("dialogs/<uuid:dialog_id>/", include("dialogs.pages.urls_dialog")),
    path("", include("dialogs.pages.urls_learning")),
    path("preferences/compaction/", preferences.compaction_display, name="compaction_display"),
    # Both also serve the login page.
    path("preferences/theme/", preferences.set_theme, name="set_theme"),
    path("preferences/language/", login_not_required(set_language), name="set_language"),
]
