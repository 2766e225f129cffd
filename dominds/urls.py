"""URLs. Those of pages are in `dialogs.pages.urls`; the API is under `/v1/`."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import include, path, re_path

from dialogs.api import endpoints
from dialogs.pages.views import shell


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """The web process runs. It does not check the database, whose failure no restart would cure."""
    return HttpResponse("ok", content_type="text/plain")


handler400 = "dialogs.pages.views.shell.bad_request"
handler500 = "dialogs.pages.views.shell.server_error"

# Unknown paths are answered in JSON too.
API = [
    path("models", endpoints.models, name="api_models"),
    path("models/<path:model_id>", endpoints.model, name="api_model"),
    path("chat/completions", endpoints.chat_completions, name="api_chat_completions"),
    path("tokens/count", endpoints.count_tokens, name="api_count_tokens"),
    path("openapi.json", endpoints.openapi, name="api_openapi"),
    re_path(r"^.*$", endpoints.unknown_path),
]
urlpatterns = [
    path("healthz", healthz, name="healthz"),
    # Our page for signing in, in place of the admin's own.
    path("admin/login/", shell.admin_login),
    path("admin/", admin.site.urls),
    path("v1/", include(API)),
    # Asked by a client whose base URL lacks the `/v1`.
    path("chat/completions", endpoints.unknown_path),
    path("", include("dialogs.pages.urls")),
]
