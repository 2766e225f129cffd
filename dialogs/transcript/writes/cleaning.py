"""What a person typed, as it is stored; or the reason why it is not."""

from __future__ import annotations

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dialogs.common.errors import InvalidMessage
from dialogs.common.text import storable


def clean_text(content: str) -> str:
    """The text as it is stored, with one kind of line end."""
    text = storable(content).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise InvalidMessage(_("Write something first: the message is empty."))
    limit = settings.DOMINDS_MAX_MESSAGE_CHARS
    if len(text) > limit:
        raise InvalidMessage(
            ngettext(
                "The message is longer than %(limit)s character.",
                "The message is longer than %(limit)s characters. Send it in parts.",
                limit,
            )
            % {"limit": f"{limit:,}"}
        )
    return text
