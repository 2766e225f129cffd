"""Who drives a dialog that is not written in the browser: what its page says of the client."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dialogs.models import ApiKey, ClientConversation, Dialog, Generation


@dataclass(frozen=True, kw_only=True)
class DrivenBy:
    """`model` is the id that was asked for, `chat` the client's own name of the conversation, where it says one."""

    key: ApiKey | None
    model: str
    tools: int
    chat: str
    asked_at: datetime | None


def driven_by(dialog: Dialog) -> DrivenBy | None:
    """None where people write in the browser."""
    if not dialog.is_client_driven:
        return None
    client = ClientConversation.objects.select_related("api_key").get(dialog=dialog)
    return DrivenBy(
        key=client.api_key,
        model=client.model,
        tools=len(client.tools),
        chat=client.chat,
        asked_at=_newest_request(dialog),
    )


def _newest_request(dialog: Dialog) -> datetime | None:
    """A request that brings nothing new, such as another try, adds no message: but it is answered."""
    made = Generation.objects.filter(dialog=dialog).order_by("-pk")
    return made.values_list("started_at", flat=True).first()
