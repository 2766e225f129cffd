"""Provider keys at rest."""

from __future__ import annotations

import pytest
from django.test import override_settings

from dialogs.common.secrets import KeyUnreadable, decrypt, encrypt

KEY = "sk-very-secret"


def test_a_key_comes_back_as_it_was() -> None:
    assert decrypt(encrypt(KEY)) == KEY


def test_what_is_stored_shows_nothing_and_differs_every_time() -> None:
    first, second = encrypt(KEY), encrypt(KEY)

    assert KEY not in first
    assert first != second


def test_with_another_secret_the_key_is_unreadable_and_says_what_to_do() -> None:
    stored = encrypt(KEY)

    with override_settings(SECRET_KEY="another"), pytest.raises(KeyUnreadable, match="Set it again"):
        decrypt(stored)


def test_a_rotated_secret_still_reads_what_the_old_one_wrote() -> None:
    with override_settings(SECRET_KEY="old"):
        stored = encrypt(KEY)

    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["old"]):
        assert decrypt(stored) == KEY


@pytest.mark.parametrize("stored", ["", "rubbish", "gAAAAA", "你好"])
def test_what_was_never_a_stored_key_is_unreadable(stored: str) -> None:
    with pytest.raises(KeyUnreadable):
        decrypt(stored)
