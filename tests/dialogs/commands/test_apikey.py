"""`manage.py apikey`: a key is printed once, listed without its secret, and revoked by whatever names it."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from dialogs.models import Agent, ApiKey
from tests.dialogs.keys import opened_with


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("apikey", *arguments, stdout=out)
    return out.getvalue()


def make(*arguments: str) -> tuple[ApiKey, str]:
    """A new key of Alice's, and its secret."""
    secret = run("create", "Laptop", "--user", "alice", "--quiet", *arguments).strip()
    return ApiKey.objects.latest("pk"), secret


def test_quiet_prints_the_key_and_nothing_else(alice: User) -> None:
    said = run("create", "Laptop", "--user", "alice", "--quiet")

    assert re.fullmatch(r"dk-[\w-]{43}\n", said)
    key = opened_with(said.strip())
    assert key is not None
    assert (key.owner, key.name, key.scope, key.notices, key.expires_at) == (alice, "Laptop", "chat", "event", None)


def test_otherwise_it_says_whose_it_is_and_that_it_is_shown_once(alice: User) -> None:
    said = run("create", "Laptop", "--user", "alice")

    assert re.search(r"“Laptop” is key \d+ of alice.*not shown again:\ndk-[\w-]{43}\n$", said)


def test_every_choice_can_be_made(alice: User, agent: Agent) -> None:
    key, _secret = make(
        "--scope", "read", "--model", "helper", "--model", "scripted/tiny", "--notices", "off",
        "--recall", "--expires", "30", "--rpm", "12",
    )  # fmt: skip

    assert (key.scope, key.allowed_models, key.notices) == ("read", ["helper", "scripted/tiny"], "off")
    assert (key.offers_recall, key.requests_per_minute) == (True, 12)
    assert key.expires_at is not None
    assert timedelta(days=29, hours=23) < key.expires_at - timezone.now() <= timedelta(days=30)


def test_the_list_says_what_there_is_and_no_secret(alice: User, bob: User) -> None:
    key, secret = make()
    run("create", "Bob's", "--user", "bob", "--quiet")
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now())

    everyone, alices = run("list"), run("list", "--user", "alice")

    assert "Bob's" in everyone
    assert "Bob's" not in alices
    assert re.search(rf"{key.pk} +{re.escape(key.prefix)}… +alice +chat +expired +20\S+ +never +Laptop\n", alices)
    assert secret not in everyone


@pytest.mark.parametrize("name_of", [lambda key, _secret: str(key.pk), lambda key, _secret: key.prefix,
                                     lambda key, _secret: f"{key.prefix}…", lambda _key, secret: secret])  # fmt: skip
def test_a_key_is_revoked_by_its_number_its_beginning_or_the_whole_of_it(alice: User, name_of: object) -> None:
    key, secret = make()

    said = run("revoke", name_of(key, secret))  # type: ignore[operator]

    assert said == f"Revoked key {key.pk}, Laptop ({key.prefix}…), of alice.\n"
    assert opened_with(secret) is None


def test_a_beginning_that_several_keys_have_is_not_enough(alice: User) -> None:
    first, second = make()[0], make()[0]

    with pytest.raises(CommandError, match=f"Several keys begin with dk-: {second.pk}, {first.pk}"):
        run("revoke", "dk-")

    assert not ApiKey.objects.exclude(revoked_at=None).exists()


def test_what_was_revoked_is_said_to_be(alice: User) -> None:
    key, _secret = make()
    run("revoke", key.prefix)

    with pytest.raises(CommandError, match="was revoked on 20"):
        run("revoke", key.prefix)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("create", "x", "--user", "nobody"), "There is no user “nobody”"),
        (("create", "x", "--user", "alice", "--model", "nobody"), "There is no model nobody here"),
        (("create", "x", "--user", "alice", "--rpm", "0"), "requests per minute"),
        (("create", "x", "--user", "alice", "--expires", "0"), "no number of days from 1 to 36,500"),
        (("create", "x", "--user", "alice", "--expires", "soon"), "no number of days"),
        (("create", "", "--user", "alice"), "name: .*blank"),
        (("create", "x", "--user", "alice", "--scope", "admin"), "invalid choice: 'admin'"),
        (("list", "--user", "nobody"), "There is no user “nobody”"),
        (("revoke", "7"), "There is no key 7"),
        (("revoke", "dk-none"), "There is no key dk-none"),
        (("revoke", "Laptop"), "There is no key Laptop"),
        (("revoke", "9" * 30), "There is no key 9999999999"),
    ],
)
def test_a_mistake_is_told_in_one_line(arguments: tuple[str, ...], complaint: str, alice: User) -> None:
    with pytest.raises(CommandError, match=complaint):
        run(*arguments)

    assert not ApiKey.objects.exists()


def test_a_whole_key_that_is_unknown_is_not_repeated(alice: User) -> None:
    with pytest.raises(CommandError) as refused:
        run("revoke", "dk-0123456789-secret")

    assert "secret" not in str(refused.value)
