"""What is around every page: its context (theme, languages, version, access to the admin), display settings, the error
pages 400, 500 and 507; and the way in: the login page, one-time links, changing the password.

The context does not read the database, so that error pages work without it. The language is set by Django's own view;
see `dialogs.pages.urls`. The rules of signing in are in `dialogs.pages.accounts`.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.views import LoginView, PasswordChangeView, redirect_to_login
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.urls import reverse, reverse_lazy
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.translation import get_language, get_language_info, gettext_lazy, pgettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from dialogs.common.errors import is_full
from dialogs.compaction.reads.compaction_card import display_of
from dialogs.compaction.writes.context_settings import set_display
from dialogs.models import CompactionDisplay
from dialogs.pages.accounts import TooManySignIns, is_guessing, note_failure, user_of_link
from dialogs.transcript.views import go_back, person_of, way_back
from dominds import __version__

THEME_COOKIE = "dominds_theme"
THEMES: dict[str, Promise] = {
    "auto": pgettext_lazy("theme", "Like the system"),
    "light": pgettext_lazy("theme", "Light"),
    "dark": pgettext_lazy("theme", "Dark"),
}
A_YEAR = 365 * 24 * 60 * 60


def theme_of(request: HttpRequest) -> str:
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else "auto"


def site(request: HttpRequest) -> dict[str, Any]:
    """The context processor named in settings."""
    return {
        "theme": theme_of(request),
        "themes": THEMES,
        "language": get_language() or settings.LANGUAGE_CODE,
        # Each language by its own name, for people who cannot read the present one.
        "languages": [(code, get_language_info(code)["name_local"]) for code, _name in settings.LANGUAGES],
        "version": __version__,
        # How commands are called on this installation.
        "program": settings.COMMAND,
        "can_admin": SimpleLazyObject(lambda: _can_admin(request)),
    }


def _can_admin(request: HttpRequest) -> bool:
    """Lazy, since it reads the session and so the database."""
    user = getattr(request, "user", None)
    return bool(user and user.is_active and user.is_staff)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page with the shell's own context only: a context processor may be what failed, or the database.

    507 where that is full: scripts have words of their own for it.
    """
    status = 507 if is_full(sys.exc_info()[1]) else 500
    return HttpResponse(render_to_string(f"{status}.html", site(request)), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Names the limit if that was the reason. For htmx only the sentence, which a script shows."""
    status, reason = _refused(exception)
    if "HX-Request" in request.headers:
        return HttpResponse(reason, status=status, content_type="text/plain; charset=utf-8")
    return HttpResponse(render_to_string("400.html", site(request) | {"reason": reason}), status=status)


def _refused(exception: Exception) -> tuple[int, str]:
    if isinstance(exception, RequestDataTooBig):
        return 413, _too_big()
    if isinstance(exception, TooManyFieldsSent):
        most = f"{settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,}"
        return 413, _("The form has more than %(most)s fields. Nothing is saved.") % {"most": most}
    return 400, _("The browser sent something that Dominds does not understand.")


def _too_big() -> str:
    limit = filesizeformat(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    return _("That is more than %(limit)s, too much for one message. Go back and send it in parts.") % {"limit": limit}


@login_not_required
@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Stored in a cookie, so that the server renders the next page with it."""
    response = go_back(request)
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE, theme, max_age=A_YEAR, samesite="Lax", httponly=True, secure=request.is_secure()
        )
    return response


class CompactionDisplayForm(forms.ModelForm):
    """How a person wants to see compactions; the service writes what it has checked."""

    class Meta:
        model = CompactionDisplay
        fields = ("show", "detail", "auto_hide_seconds", "highlight_p1", "review_drafts")
        widgets: ClassVar[dict[str, forms.Widget]] = {
            "auto_hide_seconds": forms.NumberInput(attrs={"type": "range", "min": 1, "max": 10})
        }


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def compaction_display(request: HttpRequest) -> HttpResponse:
    """Whether, how and for how long the card of compaction is shown to this person."""
    user = person_of(request)
    is_sent = request.method == "POST"
    form = CompactionDisplayForm(request.POST if is_sent else None, instance=display_of(user.pk))
    if is_sent and form.is_valid():
        set_display(user=user, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return go_back(request)
    context = {"form": form, "back": way_back(request)}
    return render(request, "dialogs/compaction_display.html", context, status=422 if is_sent else 200)


# Signing in.
BACKEND = "django.contrib.auth.backends.ModelBackend"


class LoginForm(AuthenticationForm):
    """Django's form with a limit: after many wrong passwords even the right one must wait."""

    def clean(self) -> dict[str, Any]:
        username = str(self.cleaned_data.get("username", ""))
        address = str(self.request.META.get("REMOTE_ADDR", "")) if self.request else ""
        if is_guessing(username=username, address=address):
            raise ValidationError(gettext_lazy("Too many wrong passwords. Wait five minutes, then try again."))
        try:
            return super().clean()
        except TooManySignIns:
            raise
        except ValidationError:
            note_failure(username=username, address=address)
            raise


class Login(LoginView):
    form_class = LoginForm


class WelcomeForm(forms.Form):
    """A first password, or none for now: then the next visit needs another link."""

    password = forms.CharField(
        label=gettext_lazy("Choose a password"),
        required=False,
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=gettext_lazy("Leave it empty to choose one later."),
    )

    def __init__(self, user: User, *args: Any) -> None:
        super().__init__(*args)
        self.user = user

    def clean_password(self) -> str:
        """Hash it here, before a row is locked, since that takes a while."""
        password: str = self.cleaned_data["password"]
        if password:
            validate_password(password, self.user)
        return password and make_password(password)


@never_cache
@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """A one-time link. A GET does not use it up, so that a chat program's preview does no harm."""
    user = user_of_link(uid=uid, token=token)
    if user is None:
        return _gone(request)
    form = WelcomeForm(user, *([request.POST] if request.method == "POST" else []))
    if form.is_valid():
        return _use_link(request, uid, token, password=form.cleaned_data["password"])
    return render(request, "registration/welcome.html", {"form": form, "guest": user})


@transaction.atomic
def _use_link(request: HttpRequest, uid: str, token: str, *, password: str) -> HttpResponse:
    user = user_of_link(uid=uid, token=token, lock=True)
    if user is None:
        return _gone(request)
    if password:
        user.password = password
        user.save(update_fields=["password"])
    login(request, user, backend=BACKEND)
    return redirect(settings.LOGIN_REDIRECT_URL)


def _gone(request: HttpRequest) -> HttpResponse:
    return render(request, "registration/welcome_gone.html", status=410)


class ChangePasswordForm(PasswordChangeForm):
    """Asks for the old password only if there is one."""

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        if not user.has_usable_password():
            del self.fields["old_password"]


class ChangePassword(PasswordChangeView):
    form_class = ChangePasswordForm
    # Not Django's template name, which the admin's own page uses.
    template_name = "registration/password.html"
    success_url = reverse_lazy("dialog_list")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        try:
            answer = super().form_valid(form)
        except TooManySignIns as error:
            form.add_error(None, error)
            return self.form_invalid(form)
        messages.success(self.request, gettext_lazy("Your password is changed."))
        return answer


@login_not_required
def admin_login(request: HttpRequest) -> HttpResponse:
    """Our login page in place of the admin's, which has no limit on wrong passwords."""
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
