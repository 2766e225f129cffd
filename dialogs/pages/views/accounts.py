"""Signing in: the login page, one-time links, changing the password. The rules are in `dialogs.pages.accounts`."""

from __future__ import annotations

from typing import Any

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
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from dialogs.pages.accounts import TooManySignIns, is_guessing, note_failure, user_of_link

BACKEND = "django.contrib.auth.backends.ModelBackend"


class LoginForm(AuthenticationForm):
    """Django's form with a limit: after many wrong passwords even the right one must wait."""

    def clean(self) -> dict[str, Any]:
        username = str(self.cleaned_data.get("username", ""))
        address = str(self.request.META.get("REMOTE_ADDR", "")) if self.request else ""
        if is_guessing(username=username, address=address):
            raise ValidationError(_("Too many wrong passwords. Wait five minutes, then try again."))
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
        label=_("Choose a password"),
        required=False,
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Leave it empty to choose one later."),
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
        messages.success(self.request, _("Your password is changed."))
        return answer


@login_not_required
def admin_login(request: HttpRequest) -> HttpResponse:
    """Our login page in place of the admin's, which has no limit on wrong passwords."""
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
