"""`manage.py mcp`: the MCP server for a client that starts it. Nothing but the protocol is written to stdout."""

from __future__ import annotations

import asyncio
import os
import signal
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from dialogs.api.auth import authenticate, require_read
from dialogs.api.errors import ApiError
from dialogs.mcp_server.server import Owner
from dialogs.mcp_server.stdio import owner_by_name, owner_with_key, serve


class Command(BaseCommand):
    help = "Serve MCP on stdin and stdout: dialogs, archive, readings and compactions of one person, to read."
    # A client waits for its start; `up` and `check` look at the settings.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        whose = parser.add_mutually_exclusive_group()
        whose.add_argument(
            "--key-env",
            default="DOMINDS_API_KEY",
            metavar="NAME",
            help="The environment variable that holds an API key. Default: %(default)s.",
        )
        whose.add_argument(
            "--user", metavar="NAME", help="This person's dialogs, without a key: for this machine's admin."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        owner = _by_name(options["user"]) if options["user"] else _with_key(options["key_env"])
        # The thread that waits for input cannot be woken; there is nothing to lose by ending at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        asyncio.run(serve(owner))


def _by_name(username: str) -> Owner:
    if not User.objects.filter(username=username, is_active=True).exists():
        raise CommandError(f"There is no active user “{username}”.")
    return owner_by_name(username)


def _with_key(variable: str) -> Owner:
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise CommandError(
            f"{variable} is not set. It must hold an API key; `{settings.COMMAND} apikey create` makes one."
        )
    try:
        require_read(authenticate(secret))
    except ApiError as error:
        raise CommandError(error.message) from error
    return owner_with_key(secret)
