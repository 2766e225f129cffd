"""Keys as they are made, changed, revoked and used: a secret that nobody keeps, and rules that hold at every door."""

from __future__ import annotations

import re
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dialogs.api.writes.api_keys import InvalidApiKey, change_key, create_key, revoke_key, touch
from dialogs.models import Agent, ApiKey


def a_key(owner: User, **fields: Any) -> ApiKey:
    return create_key(owner=owner, **({"name": "Laptop"} | fields))[0]


def change(key: ApiKey, **fields: Any) -> ApiKey:
    """With everything else as it is."""
    values: dict[str, Any] = {
        "name": key.name,
        "allowed_models": key.allowed_models,
        "notices": key.notices,
        "offers_recall": key.offers_recall,
        "requests_per_minute": key.requests_per_minute,
        "expires_at": key.expires_at,
    }
    return change_key(key=key, **(values | fields))


def last_used_ago(key: ApiKey, **ago: int) -> None:
    key.last_used_at = timezone.now() - timedelta(**ago)
    key.save()


def test_a_secret_has_256_random_bits_and_is_kept_as_a_hash_only(alice: User) -> None:
    key, secret = create_key(owner=alice, name="Laptop")

    row = ApiKey.objects.filter(pk=key.pk).values().get()
    assert re.fullmatch(r"dk-[A-Za-z0-9_-]{43}", secret)
    assert row["sha256"] == sha256(secret.encode()).hexdigest()
    assert row["prefix"] == secret[:10]
    assert [name for name, value in row.items() if secret in str(value)] == []
    assert len({secret, *(create_key(owner=alice, name="Laptop")[1] for _ in range(20))}) == 21


def test_a_name_is_one_line_that_can_be_stored(alice: User) -> None:
    assert a_key(alice, name="  My\n laptop\0 ").name == "My laptop␀"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"name": "  "}, "name: .*blank"),
        ({"name": "x" * 121}, "name: .*120"),
        ({"scope": "admin"}, "scope: .*admin"),
        ({"notices": "loudly"}, "notices: .*loudly"),
        ({"requests_per_minute": 0}, "requests per minute: "),
        ({"requests_per_minute": 100_001}, "At most 100,000 requests per minute"),
        ({"allowed_models": ["helper", "nobody", "no/one"]}, "There is no model nobody, no/one here."),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "must be in the future"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(alice: User, agent: Agent, wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidApiKey, match=complaint):
        a_key(alice, **wrong)

    assert not ApiKey.objects.exists()


def test_models_are_kept_once_each_in_their_order(alice: User, agent: Agent) -> None:
    key = a_key(alice, allowed_models=["scripted/tiny", "helper", "scripted/tiny"])

    assert key.allowed_models == ["scripted/tiny", "helper"]


def test_an_expired_key_can_be_renamed_and_extended(alice: User) -> None:
    key = a_key(alice)
    key.expires_at = timezone.now() - timedelta(days=1)
    key.save()

    assert not change(key, name="Old").is_usable
    assert change(key, expires_at=timezone.now() + timedelta(days=1)).is_usable


def test_a_model_that_has_gone_may_stay_but_not_come(alice: User, agent: Agent) -> None:
    narrow, wide = a_key(alice, allowed_models=["helper"]), a_key(alice)
    Agent.objects.update(enabled=False)

    assert change(narrow, name="Phone").allowed_models == ["helper"]
    with pytest.raises(InvalidApiKey, match="no model helper"):
        change(wide, allowed_models=["helper"])


def test_a_revoked_key_stays_revoked_and_as_it_was(alice: User) -> None:
    key = a_key(alice)
    revoke_key(key=key)
    first = ApiKey.objects.get().revoked_at

    revoke_key(key=key)

    assert ApiKey.objects.get().revoked_at == first
    with pytest.raises(InvalidApiKey, match="revoked"):
        change(key, name="Phone")


def test_a_key_that_was_noted_within_the_minute_costs_no_query(alice: User) -> None:
    key = a_key(alice)
    last_used_ago(key, seconds=30)

    with CaptureQueriesContext(connection) as asked:
        touch(key)

    assert len(asked) == 0


def test_of_requests_that_came_together_one_writes(alice: User) -> None:
    key = a_key(alice)
    last_used_ago(key, minutes=2)
    other = ApiKey.objects.get(pk=key.pk)

    touch(key)
    first = ApiKey.objects.get().last_used_at
    # It still believes what it read: two minutes ago.
    touch(other)

    assert first is not None
    assert first > timezone.now() - timedelta(minutes=1)
    assert ApiKey.objects.get().last_used_at == first
