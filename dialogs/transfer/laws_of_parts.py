"""Laws of what clients attached to messages in a dialog file: parts as the API takes them, whole in the file itself."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from pydantic import ValidationError

from dialogs.api.schemas import ChatMessage
from dialogs.attachments import hashes_in
from dialogs.transfer.place import Place
from dialogs.transfer.shape import MessageEntry

FIELDS = frozenset({"content", "name"})


def check_parts(entry: MessageEntry, path: str) -> None:
    """A reference to a text that is stored here already would show what may be another person's."""
    if "wire" not in entry.parts:
        return
    if not _is_sound(entry.parts["wire"]) or next(hashes_in([entry.parts]), None):
        Place(None, f"{path}.parts.wire").refuse(_("must be content parts as the API takes them."))


def _is_sound(wire: Any) -> bool:
    if not isinstance(wire, dict) or not wire.keys() <= FIELDS or not isinstance(wire.get("content", []), list):
        return False
    try:
        ChatMessage.model_validate({**wire, "role": "user"})
    except ValidationError:
        return False
    return wire.get("name", "") is not None
