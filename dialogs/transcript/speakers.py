"""Who says a message, in the reader's words: on the page, in the archive, in an exported file."""

from __future__ import annotations

from django.utils.translation import gettext as _

from dialogs.models import Agent, Message
from dialogs.models.message import MessageOrigin, Role


def speaker(message: Message, agent: Agent) -> str:
    """What a client brings along is said neither by the reader nor by the agent: it has users and names of its own."""
    if message.role == Role.TOOL:
        return _("Result of a tool")
    if message.origin == MessageOrigin.CLIENT:
        return _client_speaker(message)
    if message.role == Role.ASSISTANT:
        return agent.name
    return _("You") if message.origin == MessageOrigin.TYPED else _("Automatic message")


def _client_speaker(message: Message) -> str:
    if message.role == Role.SYSTEM:
        return _("System message")
    if message.role == Role.ASSISTANT:
        return _("Assistant")
    name = message.parts.get("wire", {}).get("name", "")
    return _("User %(name)s") % {"name": name} if name else _("User")
