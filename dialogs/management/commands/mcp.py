"""`manage.py mcp`: the MCP server on stdin and stdout, started by its client. Only the protocol is written to
stdout."""

from __future__ import annotations

import asyncio
import os
import signal
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from mcp.server.stdio import stdio_server

from dialogs.api.auth import admit, authenticate, require_read
from dialogs.api.errors import ApiError, disabled_owner
from dialogs.common.threads import in_db, own_threads
from dialogs.mcp_server.server import Owner, build_server


class Command(BaseCommand):
    help = "Serve MCP on stdin and stdout: dialogs, archive, readings and compactions of one person, to read."
    # Checks would delay the start, for which a client waits; `up` and `check` run them.
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
        # End at once on Ctrl-C: the thread that reads stdin cannot be woken, and nothing is lost.
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


async def serve(owner: Owner) -> None:
    """Answer until the client closes its end. The SDK keeps everything but the protocol off stdout."""
    server = build_server(owner)
    with own_threads():
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


def owner_with_key(secret: str) -> Owner:
    async def owner() -> User:
        key = await in_db(authenticate)(secret)
        require_read(key)
        await admit(key)
        return key.owner

    return owner


def owner_by_name(username: str) -> Owner:
    async def owner() -> User:
        found = await in_db(User.objects.filter(username=username, is_active=True).first)()
        if found is None:
            raise disabled_owner()
        return found

    return owner
