"""From a request's headers to the key behind it, and what each useless key is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.http.request import HttpHeaders
from django.utils import timezone

from dialogs.api.auth import authenticate, may_use, require_chat, secret_in
from dialogs.api.errors import ApiError
from dialogs.api.writes.api_keys import create_key, revoke_key
from dialogs.models import LLM, ApiKey


def refusal(secret: str) -> ApiError:
    with pytest.raises(ApiError) as refused:
        authenticate(secret)
    return refused.value


@pytest.mark.parametrize(
    ("headers", "secret"),
    [
        ({"authorization": "Bearer dk-1"}, "dk-1"),
        ({"authorization": "bearer  dk-1 "}, "dk-1"),
        ({"x-api-key": "dk-2"}, "dk-2"),
        ({"api-key": " dk-3"}, "dk-3"),
        ({"authorization": "Bearer dk-1", "x-api-key": "dk-2"}, "dk-1"),
        # A proxy's own sign-in, or a client that was given no key, does not hide another header.
        ({"authorization": "Basic abc", "x-api-key": "dk-2"}, "dk-2"),
        ({"authorization": "Bearer ", "api-key": "dk-3"}, "dk-3"),
        ({"authorization": "dk-1"}, ""),
        ({}, ""),
    ],
)
def test_the_secret_is_found_where_clients_send_it(headers: dict[str, str], secret: str) -> None:
    assert secret_in(headers) == secret


def test_djangos_headers_will_do() -> None:
    assert secret_in(HttpHeaders({"HTTP_AUTHORIZATION": "Bearer dk-1"})) == "dk-1"
    assert secret_in(HttpHeaders({"HTTP_X_API_KEY": "dk-2"})) == "dk-2"


def test_a_secret_opens_its_key_and_the_use_is_noted(alice: User) -> None:
    key, secret = create_key(owner=alice, name="Laptop")

    found = authenticate(secret)

    assert (found, found.owner) == (key, alice)
    key.refresh_from_db()
    assert key.last_used_at is not None


def test_no_key_is_told_how_to_send_one() -> None:
    assert "Authorization: Bearer" in refusal("").message


@pytest.mark.parametrize("secret", ["dk-wrong", "sk-of-another-service", "ключ", "\udcff"])
def test_an_unknown_key_is_refused_and_not_repeated(db: None, secret: str) -> None:
    error = refusal(secret)

    assert (error.status, error.code) == (401, "invalid_api_key")
    assert secret not in error.message


def expired(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


def without_an_owner(key: ApiKey) -> None:
    User.objects.filter(pk=key.owner_id).update(is_active=False)


@pytest.mark.parametrize(
    ("happens", "why"),
    [(lambda key: revoke_key(key=key), "revoked"), (expired, "expired"), (without_an_owner, "account")],
)
def test_a_key_that_opens_nothing_any_more_says_why_and_is_not_noted_as_used(
    alice: User, happens: Callable[[ApiKey], None], why: str
) -> None:
    key, secret = create_key(owner=alice, name="Laptop")

    happens(key)

    assert why in refusal(secret).message
    key.refresh_from_db()
    assert key.last_used_at is None


def test_a_read_only_key_may_not_chat(alice: User) -> None:
    reader, _secret = create_key(owner=alice, name="Reader", scope=ApiKey.Scope.READ)
    chatter, _secret = create_key(owner=alice, name="Chatter")

    require_chat(chatter)
    with pytest.raises(ApiError) as refused:
        require_chat(reader)

    assert (refused.value.status, refused.value.code) == (403, "insufficient_scope")


def test_a_key_may_use_the_models_it_names_and_all_when_it_names_none(alice: User, llm: LLM) -> None:
    narrow, _secret = create_key(owner=alice, name="Narrow", allowed_models=["scripted/tiny"])
    wide, _secret = create_key(owner=alice, name="Wide")

    assert may_use(narrow, "scripted/tiny")
    assert may_use(wide, "anything")
    assert not may_use(narrow, "helper")
