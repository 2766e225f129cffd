"""A person's API keys: the list, a new one whose secret is shown once, changes, and the way to revoke one; and the
state of a dialog's context as JSON, for its owner's programs.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import asdict
from datetime import date, datetime, timedelta
from functools import wraps
from itertools import islice
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_safe

from dialogs.api.auth import authenticate, require_read, secret_in
from dialogs.api.errors import ApiError
from dialogs.api.reads.api_keys import keys_of, offered_agents, offered_llms, offered_models
from dialogs.api.writes.api_keys import InvalidApiKey, change_key, create_key, revoke_key
from dialogs.compaction.reads.context_state import context_state
from dialogs.context.reads import context_stats, present_messages, snapshot_for_programs
from dialogs.models import ApiKey
from dialogs.transcript.views import dialog_or_404, person_of
from health.compaction.snapshot import TaskSnapshot
from health.compaction.snapshot import as_json as snapshot_as_json


@never_cache
@require_safe
def api_keys(request: HttpRequest) -> HttpResponse:
    keys = list(keys_of(person_of(request)))
    context = {
        "keys": [key for key in keys if not key.revoked_at],
        "revoked": [key for key in keys if key.revoked_at],
        "base_url": _base_url(request),
    }
    return render(request, "dialogs/api_keys.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def api_key_new(request: HttpRequest) -> HttpResponse:
    """The form; then, in its place, the secret, which is shown only in this response."""
    if request.method != "POST":
        return _page(request, form=ApiKeyForm())
    form = ApiKeyForm(request.POST)
    if form.is_valid():
        try:
            key, secret = create_key(owner=person_of(request), **form.values())
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
    """Another person's key is answered exactly as one that does not exist."""
    key = keys_of(person_of(request)).filter(pk=key_id).first()
    if key is None:
        raise Http404
    return key


def _base_url(request: HttpRequest) -> str:
    """The base URL to enter in a client."""
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


ALL, SOME = "all", "some"
NEVER, ON_DATE = "never", "date"
# After the very last year there is no midnight at which a key could expire.
LAST_YEAR = 9998
EXPIRIES: dict[str, Promise] = {
    NEVER: gettext_lazy("Never"),
    "30": gettext_lazy("In 30 days"),
    "90": gettext_lazy("In 90 days"),
    "365": gettext_lazy("In a year"),
    ON_DATE: gettext_lazy("After a day of your choice"),
}
# What the client sees of each kind of notice.
NOTICE_HINTS: dict[str, Promise] = {
    ApiKey.Notices.EVENT: gettext_lazy("A line of status beside the answer in Open WebUI. Other clients show nothing."),
    ApiKey.Notices.REASONING: gettext_lazy("A line where the client shows the model's thinking."),
    ApiKey.Notices.CONTENT: gettext_lazy(
        "A marked line before the answer. Dominds takes it out again when the client sends it back."
    ),
    ApiKey.Notices.OFF: gettext_lazy("Nothing. The answer just takes longer to begin."),
}


class ApiKeyForm(forms.ModelForm):
    which = forms.ChoiceField(
        label=gettext_lazy("Models"),
        choices={ALL: gettext_lazy("All, and those that come later"), SOME: gettext_lazy("Only these")},
        widget=forms.RadioSelect,
    )
    models = forms.MultipleChoiceField(
        label=gettext_lazy("Only these"), required=False, widget=forms.CheckboxSelectMultiple
    )
    expiry = forms.ChoiceField(label=gettext_lazy("Expires"), choices=EXPIRIES)
    expires_on = forms.DateField(
        label=gettext_lazy("Last day"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    class Meta:
        model = ApiKey
        fields = ("name", "scope", "notices", "offers_recall", "requests_per_minute")
        widgets: ClassVar[dict[str, forms.Widget]] = {
            "name": forms.TextInput(attrs={"autocomplete": "off"}),
            "scope": forms.RadioSelect(),
            "notices": forms.RadioSelect(),
        }

    def __init__(self, data: QueryDict | None = None, *, instance: ApiKey | None = None) -> None:
        key = instance or ApiKey()
        super().__init__(data, instance=key, initial=_initial(key), auto_id="key-%s", label_suffix="")
        self.fields["models"].choices = _choices(key)  # type: ignore[attr-defined]
        default = settings.DOMINDS_API_REQUESTS_PER_MINUTE
        self.fields["requests_per_minute"].help_text = (
            _("Empty: %(default)s.") % {"default": default} if default else _("Empty: as many as it likes.")
        )
        if key.pk:
            # Who handed out a key that reads must not find it chatting.
            del self.fields["scope"]

    @property
    def notice_rows(self) -> list[tuple[Any, Promise]]:
        """Each choice with what it means."""
        return [(radio, NOTICE_HINTS[radio.data["value"]]) for radio in self["notices"]]

    @property
    def model_groups(self) -> list[tuple[str, list[Any]]]:
        boxes = iter(self["models"])
        return [(name, list(islice(boxes, len(group)))) for name, group in self.fields["models"].choices]  # type: ignore[attr-defined]

    def clean_expires_on(self) -> date | None:
        day: date | None = self.cleaned_data["expires_on"]
        if day and day.year > LAST_YEAR:
            raise forms.ValidationError(_("Choose an earlier day."))
        return day

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if data.get("which") == SOME and not data.get("models"):
            self.add_error("models", _("Choose a model, or all of them."))
        # Only where the browser does not hide the list: what was meant is not guessed.
        if data.get("which") == ALL and data.get("models"):
            self.add_error("which", _("Choose “Only these”, or no model below."))
        if data.get("expiry") == ON_DATE and "expires_on" in data and not data["expires_on"]:
            self.add_error("expires_on", _("Choose a day."))
        return data

    def values(self) -> dict[str, Any]:
        """As the services take them."""
        data = {name: self.cleaned_data[name] for name in self.Meta.fields if name in self.fields}
        return data | {"allowed_models": self.cleaned_data["models"], "expires_at": self._expires_at()}

    def _expires_at(self) -> datetime | None:
        expiry, day = self.cleaned_data["expiry"], self.cleaned_data["expires_on"]
        if expiry == NEVER:
            return None
        if expiry != ON_DATE:
            return timezone.now() + timedelta(days=int(expiry))
        if day == self.initial["expires_on"]:
            return self.instance.expires_at
        # The whole of the last day is good.
        return timezone.make_aware(datetime.combine(day, datetime.min.time()) + timedelta(days=1))


def _initial(key: ApiKey) -> dict[str, Any]:
    last_moment = key.expires_at and timezone.localtime(key.expires_at - timedelta(microseconds=1))
    return {
        "which": SOME if key.allowed_models else ALL,
        "models": key.allowed_models,
        "expiry": ON_DATE if last_moment else NEVER,
        "expires_on": last_moment and last_moment.date(),
    }


def _choices(key: ApiKey) -> list[tuple[str, list[tuple[str, str]]]]:
    """Agents, LLMs, and what the key may use although it is not offered any more."""
    agents = [(agent.slug, agent.name) for agent in offered_agents()]
    llms = [(llm.slug, llm.slug) for llm in offered_llms()]
    offered = {model for model, _name in agents + llms}
    gone = [(model, model) for model in key.allowed_models if model not in offered]
    groups = [(_("Agents"), agents), (_("LLMs"), llms), (_("Not here any more"), gone)]
    return [group for group in groups if group[1]]


View = Callable[[HttpRequest, UUID], HttpResponseBase]


def for_programs(view: View) -> View:
    """Read by a dialog's owner who is signed in, or with one of their API keys."""

    @wraps(view)
    def answered(request: HttpRequest, dialog_id: UUID) -> HttpResponseBase:
        if secret := secret_in({name.lower(): value for name, value in request.headers.items()}):
            try:
                key = authenticate(secret)
                require_read(key)
                request.user = key.owner
            except ApiError as error:
                return JsonResponse(error.as_json(), status=error.status, headers=error.headers)
        elif not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return view(request, dialog_id)

    return login_not_required(never_cache(require_GET(answered)))


@for_programs
def as_json(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    return JsonResponse(asdict(context_state(dialog_or_404(request, dialog_id))))


@for_programs
def stats(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    """The number of tokens is an estimate."""
    found = context_stats(dialog_or_404(request, dialog_id))
    return JsonResponse(
        {
            "messageCount": found.message_count,
            "estimatedTokens": found.estimated_tokens,
            "hasSnapshot": found.has_snapshot,
        }
    )


@for_programs
def snapshot(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    """Empty where no task has begun; `hasSnapshot` of the statistics tells them apart."""
    return JsonResponse(snapshot_as_json(snapshot_for_programs(dialog_or_404(request, dialog_id)) or TaskSnapshot()))


@for_programs
def present(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    """What the model would be sent now, message by message: its size (≈), and how important its kind makes it."""
    return JsonResponse({"messages": [asdict(one) for one in present_messages(dialog_or_404(request, dialog_id))]})
