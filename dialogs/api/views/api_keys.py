"""A person's API keys: the list, a new one whose secret is shown once, changes, and the way to revoke one."""

from __future__ import annotations

import json
import shlex
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from dialogs.api.api_key_form import ApiKeyForm
from dialogs.api.reads.api_keys import keys_of
from dialogs.api.reads.offered import offered_models
from dialogs.api.writes.api_keys import InvalidApiKey, change_key, create_key, revoke_key
from dialogs.models import ApiKey


@never_cache
@require_safe
def api_keys(request: HttpRequest) -> HttpResponse:
    keys = list(keys_of(_person(request)))
    context = {
        "keys": [key for key in keys if not key.revoked_at],
        "revoked": [key for key in keys if key.revoked_at],
        "base_url": _base_url(request),
    }
    return render(request, "dialogs/api_keys.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def api_key_new(request: HttpRequest) -> HttpResponse:
    """The form; then, in its place, the secret. It is nowhere else: no redirect could carry it."""
    if request.method != "POST":
        return _page(request, form=ApiKeyForm())
    form = ApiKeyForm(request.POST)
    if form.is_valid():
        try:
            key, secret = create_key(owner=_person(request), **form.values())
        except InvalidApiKey as error:
            form.add_error(None, str(error))
        else:
            return _page(request, key=key, secret=secret, curl=_curl(request, key, secret))
    return _page(request, form=form)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def api_key_change(request: HttpRequest, key_id: int) -> HttpResponse:
    key = _key_or_404(request, key_id)
    if key.revoked_at:
        messages.error(request, _("This key was revoked. Create another one."))
        return redirect("api_keys")
    form = ApiKeyForm(request.POST if request.method == "POST" else None, instance=key)
    if form.is_valid():
        try:
            change_key(key=key, **form.values())
        except InvalidApiKey as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("Saved."))
            return redirect("api_keys")
    return _page(request, form=form, changed=_key_or_404(request, key_id))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def api_key_revoke(request: HttpRequest, key_id: int) -> HttpResponse:
    key = _key_or_404(request, key_id)
    if request.method == "POST":
        revoke_key(key=key)
        messages.success(request, _("“%(name)s” is revoked.") % {"name": key.name})
        return redirect("api_keys")
    is_modal = bool(request.htmx)  # type: ignore[attr-defined]
    context = {
        "question": _("Revoke this key?"),
        "name": f"{key.name} · {key.prefix}…",
        "words": _("What uses it is refused from now on. This cannot be undone."),
        "label": _("Revoke"),
        "action": request.path,
        "back": reverse("api_keys"),
        "is_modal": is_modal,
    }
    return render(request, "dialogs/_confirm.html" if is_modal else "dialogs/confirm.html", context)


def _page(request: HttpRequest, *, form: ApiKeyForm | None = None, **context: Any) -> HttpResponse:
    """For htmx what is below the heading."""
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    template = "dialogs/_api_key.html" if is_fragment else "dialogs/api_key.html"
    # htmx shows nothing of an answer that is an error.
    status = 422 if form and form.errors and not is_fragment else 200
    return render(request, template, {"form": form, "base_url": _base_url(request)} | context, status=status)


def _key_or_404(request: HttpRequest, key_id: int) -> ApiKey:
    """Another person's key is answered exactly as one that never was."""
    key = keys_of(_person(request)).filter(pk=key_id).first()
    if key is None:
        raise Http404
    return key


def _person(request: HttpRequest) -> User:
    return cast("User", request.user)


def _base_url(request: HttpRequest) -> str:
    """What a client asks for as its base URL."""
    return request.build_absolute_uri("/v1")


def _curl(request: HttpRequest, key: ApiKey, secret: str) -> str:
    """A line to try the key with, in a shell."""
    authorization = shlex.quote(f"Authorization: Bearer {secret}")
    model = next(iter(key.allowed_models or offered_models()), None)
    if key.scope == ApiKey.Scope.READ or model is None:
        return f"curl {_base_url(request)}/models -H {authorization}"
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello!"}]}, ensure_ascii=False)
    return (
        f"curl {_base_url(request)}/chat/completions -H {authorization} "
        f"-H 'Content-Type: application/json' -d {shlex.quote(body)}"
    )
