"""Laws of what stands beside the text of messages in a dialog file: the handover of a new course, and what clients
attached, as the API takes it and whole in the file itself.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from pydantic import ValidationError

from dialogs.api.schemas import ChatMessage
from dialogs.attachments import hashes_in
from dialogs.models.message import MessageOrigin
from dialogs.transfer.place import Place
from dialogs.transfer.shape import MessageEntry

FIELDS = frozenset({"content", "name"})
HANDOVER_FIELDS = {"text": str, "tokens": int, "away": bool}


def check_parts(entry: MessageEntry, path: str) -> None:
    """A reference to a text that is stored here already would show what may be another person's."""
    handover = entry.parts.get("handover")
    if handover is not None and (entry.origin != MessageOrigin.HANDOVER or not _is_handover(handover)):
        Place(None, f"{path}.parts.handover").refuse(_("must be a text with its size in tokens."))
    if "wire" not in entry.parts:
        return
    if not _is_sound(entry.parts["wire"]) or next(hashes_in([entry.parts]), None):
        Place(None, f"{path}.parts.wire").refuse(_("must be content parts as the API takes them."))


def _is_handover(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != HANDOVER_FIELDS.keys():
        return False
    return all(type(value[name]) is kind for name, kind in HANDOVER_FIELDS.items())


def _is_sound(wire: Any) -> bool:
    if not isinstance(wire, dict) or not wire.keys() <= FIELDS or not isinstance(wire.get("content", []), list):
        return False
    try:
        ChatMessage.model_validate({**wire, "role": "user"})
    except ValidationError:
        return False
    return wire.get("name", "") is not None
