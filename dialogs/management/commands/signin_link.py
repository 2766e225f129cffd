"""`manage.py signin_link`: print a one-time sign-in link, for whoever has lost password or link."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from dialogs.pages.accounts import ensure_first_user, sign_in_path
from dominds.supervisor import lock


class Command(BaseCommand):
    help = "Print a link that signs a person in, once, within a day."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", nargs="?", help="Default: the first superuser.")
        parser.add_argument("--address", help="Where people reach Dominds. Default: where it runs, or would run.")

    def handle(self, *args: Any, **options: Any) -> None:
        user = _user(options["username"])
        self.stdout.write((options["address"] or _address()).rstrip("/") + sign_in_path(user))


def _user(username: str | None) -> User:
    if username is None:
        return _first_user()
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise CommandError(f"There is no active user “{username}”.")
    return user


def _first_user() -> User:
    try:
        return ensure_first_user()
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from error


def _address() -> str:
    scheme = "https" if settings.HTTPS else "http"
    configured = settings.DOMINDS_HOST, settings.DOMINDS_PORT
    host, port = lock.listens_at(settings.DOMINDS_DATA_DIR) or configured
    # A server that listens on all addresses is reached on this one.
    host = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
