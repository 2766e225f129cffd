"""Signing in: the login page, one-time links, changing the password. The rules are in `dialogs.pages.accounts`."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
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

from dialogs.pages.accounts import is_guessing, note_failure, user_of_link

BACKEND = "django.contrib.auth.backends.ModelBackend"


class LoginForm(AuthenticationForm):
    """Django's, with a brake: after many wrong passwords even the right one must wait."""

    def clean(self) -> dict[str, Any]:
        username = str(self.cleaned_data.get("username", ""))
        address = str(self.request.META.get("REMOTE_ADDR", "")) if self.request else ""
        if is_guessing(username=username, address=address):
            raise ValidationError(_("Too many wrong passwords. Wait five minutes, then try again."))
        try:
            return super().clean()
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
        password: str = self.cleaned_data["password"]
        if password:
            validate_password(password, self.user)
        return password

    def save(self) -> User:
        if self.cleaned_data["password"]:
            self.user.set_password(self.cleaned_data["password"])
            self.user.save(update_fields=["password"])
        return self.user


@never_cache
@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """A one-time link. Looking at it uses nothing up, so that a preview in a chat program does no harm."""
    if request.method == "POST":
        return _use_link(request, uid, token)
    user = user_of_link(uid=uid, token=token)
    return _gone(request) if user is None else _page(request, WelcomeForm(user))


@transaction.atomic
def _use_link(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    user = user_of_link(uid=uid, token=token, lock=True)
    if user is None:
        return _gone(request)
    form = WelcomeForm(user, request.POST)
    if not form.is_valid():
        return _page(request, form)
    login(request, form.save(), backend=BACKEND)
    return redirect(settings.LOGIN_REDIRECT_URL)


def _page(request: HttpRequest, form: WelcomeForm) -> HttpResponse:
    return render(request, "registration/welcome.html", {"form": form, "guest": form.user})


def _gone(request: HttpRequest) -> HttpResponse:
    return render(request, "registration/welcome_gone.html", status=410)


class ChangePasswordForm(PasswordChangeForm):
    """Whoever came by a link and chose no password has no old one to give."""

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
        messages.success(self.request, _("Your password is changed."))
        return super().form_valid(form)


@login_not_required
def admin_login(request: HttpRequest) -> HttpResponse:
    """The admin's own login page has no brake, so there is one door for all."""
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
