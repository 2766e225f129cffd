"""`manage.py mcp`, as far as it refuses to start. How it serves: tests/clients/test_mcp.py."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from dialogs.api.writes.api_keys import create_key, revoke_key


def refusal(*arguments: str) -> str:
    with pytest.raises(CommandError) as refused:
        call_command("mcp", *arguments)
    return str(refused.value)


def test_without_a_key_it_says_where_it_looked(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOMINDS_API_KEY", raising=False)

    assert "DOMINDS_API_KEY is not set" in refusal()
    assert "MY_KEY is not set" in refusal("--key-env", "MY_KEY")


def test_a_key_that_is_no_good_is_refused_at_once_and_not_repeated(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, secret = create_key(owner=alice, name="Laptop")
    revoke_key(key=key)
    monkeypatch.setenv("DOMINDS_API_KEY", secret)

    said = refusal()

    assert "revoked" in said
    assert secret not in said


def test_a_person_must_be_there_and_active(alice: User) -> None:
    User.objects.update(is_active=False)

    assert "no active user “alice”" in refusal("--user", "alice")
    assert "no active user “nobody”" in refusal("--user", "nobody")
