"""`manage.py apikey`: make, list and revoke API keys from a terminal. A secret is printed once."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from dialogs.api.reads.api_keys import key_with, keys_of
from dialogs.api.writes.api_keys import MARK, PREFIX_CHARS, InvalidApiKey, create_key, revoke_key
from dialogs.models import ApiKey

MOST_DAYS = 36_500
COLUMNS = "{:>5}  {:<11}  {:<12}  {:<5}  {:<8}  {:<10}  {:<10}  {}"


def days(text: str) -> timedelta:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_DAYS):
        raise ArgumentTypeError(f"{text!r} is no number of days from 1 to {MOST_DAYS:,}.")
    return timedelta(days=int(text))


class Command(BaseCommand):
    help = "Make, list and revoke API keys for /v1."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="Make a key and print it, once.")
        create.add_argument("name", help="What it is for, as its owner's page lists it.")
        create.add_argument("--user", required=True, help="The user name of its owner.")
        create.add_argument("--scope", default="chat", choices=ApiKey.Scope.values, help="Default: %(default)s.")
        create.add_argument("--model", action="append", default=[], help="May use this one only. Can be repeated.")
        create.add_argument("--notices", default="event", choices=ApiKey.Notices.values, help="Default: %(default)s.")
        recall = "Let the model look up what was compacted away, and keep reminders."
        create.add_argument("--recall", action="store_true", help=recall)
        create.add_argument("--expires", type=days, metavar="DAYS", help="Without this it never expires.")
        create.add_argument("--rpm", type=int, metavar="N", help="Requests per minute; else the server's default.")
        create.add_argument("--quiet", action="store_true", help="Print the key and nothing else.")
        listed = actions.add_parser("list", help="List keys, never their secrets.")
        listed.add_argument("--user", help="This owner's only.")
        revoke = actions.add_parser("revoke", help="Refuse a key from now on.")
        revoke.add_argument("key", help="Its number, the first characters of it, or the whole key.")

    def handle(self, *args: Any, **options: Any) -> None:
        actions = {"create": self._create, "list": self._list, "revoke": self._revoke}
        try:
            actions[options["action"]](options)
        except InvalidApiKey as error:
            raise CommandError(str(error)) from error

    def _create(self, options: dict[str, Any]) -> None:
        key, secret = create_key(
            owner=_user(options["user"]),
            name=options["name"],
            scope=options["scope"],
            allowed_models=options["model"],
            notices=options["notices"],
            offers_recall=options["recall"],
            requests_per_minute=options["rpm"],
            expires_at=options["expires"] and timezone.now() + options["expires"],
        )
        if not options["quiet"]:
            self.stdout.write(f"“{key.name}” is key {key.pk} of {key.owner}. Copy it now, it is not shown again:")
        self.stdout.write(secret)

    def _list(self, options: dict[str, Any]) -> None:
        keys = keys_of(_user(options["user"])) if options["user"] else ApiKey.objects.all()
        self.stdout.write(COLUMNS.format("id", "key", "owner", "scope", "state", "expires", "last used", "name"))
        for key in keys.select_related("owner"):
            until, used = (f"{moment:%Y-%m-%d}" if moment else "never" for moment in (key.expires_at, key.last_used_at))
            prefix, owner = f"{key.prefix}…", key.owner.get_username()
            self.stdout.write(COLUMNS.format(key.pk, prefix, owner, key.scope, key.state, until, used, key.name))

    def _revoke(self, options: dict[str, Any]) -> None:
        key = _key(options["key"])
        if key.revoked_at:
            raise CommandError(f"Key {key.pk}, {key}, was revoked on {key.revoked_at:%Y-%m-%d}.")
        revoke_key(key=key)
        self.stdout.write(f"Revoked key {key.pk}, {key}, of {key.owner}.")


def _user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is no user “{name}”.")
    return user


def _key(text: str) -> ApiKey:
    found = _keys(text)
    if not found:
        # Only the first characters: the whole key must not be printed.
        raise CommandError(f"There is no key {text[:PREFIX_CHARS]}. `apikey list` shows those there are.")
    if len(found) > 1:
        numbers = ", ".join(str(key.pk) for key in found)
        raise CommandError(f"Several keys begin with {text}: {numbers}. Name one by its number.")
    return found[0]


def _keys(text: str) -> list[ApiKey]:
    text = text.removesuffix("…")
    if text.isascii() and text.isdigit():
        return list(ApiKey.objects.filter(pk=int(text)))
    if len(text) > PREFIX_CHARS:
        return [key] if (key := key_with(text)) else []
    return list(ApiKey.objects.filter(prefix__startswith=text)) if text.startswith(MARK) else []
