"""API keys in the admin: staff see whose they are and revoke them, and never see what opens them."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from dialogs.api.writes.api_keys import create_key, revoke_key
from dialogs.models import ApiKey
from tests.dialogs.admin.conftest import told

LIST = "/admin/dialogs/apikey/"


@pytest.fixture
def key(alice: User) -> ApiKey:
    return create_key(owner=alice, name="Laptop")[0]


def revoke(client: Client, *keys: ApiKey) -> list[str]:
    return told(client.post(LIST, {"action": "revoke", "_selected_action": [key.pk for key in keys]}))


def test_staff_see_whose_a_key_is_and_not_its_hash(staff: Client, key: ApiKey) -> None:
    for path in (LIST, f"{LIST}{key.pk}/change/"):
        page = staff.get(path).content.decode()

        assert "alice" in page
        assert f"{key.prefix}…" in page
        assert key.sha256 not in page


def test_keys_are_revoked_and_those_that_were_are_not_counted(staff: Client, key: ApiKey, bob: User) -> None:
    other = create_key(owner=bob, name="Phone")[0]
    revoke_key(key=other)

    assert revoke(staff, key, other) == ["1 key is revoked."]
    assert not ApiKey.objects.filter(revoked_at=None).exists()


def test_a_key_of_an_account_that_was_switched_off_is_not_told_to_be_usable(
    staff: Client, key: ApiKey, alice: User
) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)

    assert '<td class="field-state">account disabled</td>' in staff.get(LIST).content.decode()


def test_who_may_only_look_revokes_nothing(as_bob: Client, key: ApiKey, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    bob.user_permissions.add(Permission.objects.get(codename="view_apikey"))

    revoke(as_bob, key)

    assert as_bob.get(LIST).status_code == 200
    assert ApiKey.objects.get().revoked_at is None


def test_nobody_adds_or_changes_a_key_here(staff: Client, key: ApiKey) -> None:
    assert staff.get(f"{LIST}add/").status_code == 403
    assert staff.post(f"{LIST}{key.pk}/change/", {"name": "Mine"}).status_code == 403
    assert ApiKey.objects.get().name == "Laptop"
