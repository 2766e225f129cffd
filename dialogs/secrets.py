"""Provider keys at rest: encrypted with a key derived from Django's SECRET_KEY. The only file that knows both forms.

A plain key leaves this file for one place, `ProviderSettings`, which keeps it out of its repr.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.translation import gettext as _

# Changing this makes every stored key unreadable.
PURPOSE = b"dominds provider keys v1"


class KeyUnreadable(ValueError):
    """A stored key cannot be read any more: the secret that it was stored with has changed."""

    def __init__(self) -> None:
        super().__init__(
            _("The stored key cannot be read any more, because DOMINDS_SECRET_KEY has changed. Set it again.")
        )


def encrypt(key: str) -> str:
    """What may be stored. The same key gives another text every time."""
    return _box().encrypt(key.encode()).decode()


def decrypt(stored: str) -> str:
    """The key as it was typed. Raises KeyUnreadable."""
    try:
        return _box().decrypt(stored.encode()).decode()
    except (InvalidToken, UnicodeDecodeError) as error:
        raise KeyUnreadable from error


def _box() -> MultiFernet:
    """Writes with SECRET_KEY; reads what an earlier one wrote, so that it can be rotated."""
    return MultiFernet([_fernet(str(secret)) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _fernet(secret: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
