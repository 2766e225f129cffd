"""Whose keys these are, and which of them still open something."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dialogs.api.reads.api_keys import key_with, keys_of
from dialogs.api.writes.api_keys import create_key
from dialogs.models import ApiKey
from tests.dialogs.keys import opened_with


def test_each_person_has_their_own_newest_first(alice: User, bob: User) -> None:
    first, second = create_key(owner=alice, name="1")[0], create_key(owner=alice, name="2")[0]
    create_key(owner=bob, name="Bob's")

    assert list(keys_of(alice)) == [second, first]


def test_a_key_and_its_owner_come_with_one_indexed_query(alice: User) -> None:
    key, secret = create_key(owner=alice, name="Laptop")

    with CaptureQueriesContext(connection) as asked:
        found = key_with(secret)
        owner = found and found.owner

    assert (found, owner) == (key, alice)
    assert len(asked) == 1
    assert next(field for field in ApiKey._meta.fields if field.name == "sha256").unique


@pytest.mark.parametrize("change", [lambda secret: secret[:-1], lambda secret: secret + "x", str.lower, lambda _: ""])
def test_a_secret_opens_a_key_only_as_it_is(alice: User, change: type[str]) -> None:
    _key, secret = create_key(owner=alice, name="Laptop")

    assert opened_with(change(secret)) is None


def test_what_is_stored_opens_nothing(alice: User) -> None:
    key, _secret = create_key(owner=alice, name="Laptop")

    assert opened_with(key.sha256) is None
    assert opened_with(key.prefix) is None
