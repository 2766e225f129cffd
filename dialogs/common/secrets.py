"""Provider keys at rest: encrypted with a key derived from Django's SECRET_KEY. The only file that knows both forms.

A decrypted key goes only to `ProviderSettings`, which keeps it out of its repr.
"""

from __future__ import annotations

import base64
import os

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.translation import gettext as _

# Changing this makes every stored key unreadable.
PURPOSE = b"dominds provider keys v1"


# Parts of the name of a variable that may hold an LLM key; and of secrets of ours, of databases, of clouds.
_KEY_WORDS = frozenset({"KEY", "APIKEY", "TOKEN"})
_OURS = ("DOMINDS_", "DJANGO_")
_OF_OTHERS = ("SECRET", "PASSWORD", "PRIVATE")


class KeyUnreadable(ValueError):
    """A stored key cannot be read any more: the secret that it was stored with has changed."""

    def __init__(self) -> None:
        super().__init__(
            _("The stored key cannot be read any more, because DOMINDS_SECRET_KEY has changed. Set it again.")
        )


def may_hold_key(variable: str) -> bool:
    """May this environment variable hold a provider's key? Its value is sent to the provider, so not any variable
    may."""
    if variable in settings.DOMINDS_KEY_VARIABLES:
        return True
    name = variable.upper()
    is_of_others = name.startswith(_OURS) or any(word in name for word in _OF_OTHERS)
    return not is_of_others and not _KEY_WORDS.isdisjoint(name.split("_"))


def not_for_keys(variable: str) -> str:
    return _(
        "%(variable)s is not a variable that a provider's key is read from. Its name must have KEY or TOKEN in it, "
        "as in EXAMPLE_API_KEY, or be listed in DOMINDS_KEY_VARIABLES."
    ) % {"variable": variable}


def key_in_environment(variable: str) -> str:
    return os.environ.get(variable, "").strip() if variable and may_hold_key(variable) else ""


def encrypt(key: str) -> str:
    """The secret as it may be stored. The same secret gives another text every time."""
    return _box().encrypt(key.encode()).decode()


def decrypt(stored: str) -> str:
    """The key as it was typed. Raises KeyUnreadable."""
    try:
        return _box().decrypt(stored.encode()).decode()
    except (InvalidToken, UnicodeDecodeError) as error:
        raise KeyUnreadable from error


def _box() -> MultiFernet:
    """Encrypts with SECRET_KEY; decrypts with its fallbacks too, so that SECRET_KEY can be rotated."""
    return MultiFernet([_fernet(str(secret)) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _fernet(secret: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
