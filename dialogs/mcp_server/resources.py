"""Dialogs as resources, for clients in which a person attaches one: `dominds://dialogs/<id>`, its newest messages."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from mcp.types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from dialogs.mcp_server import words
from dialogs.mcp_server.arguments import ListDialogs, ReadDialog
from dialogs.mcp_server.reading import NothingThere, list_dialogs, read_dialog

BEFORE_ID = "dominds://dialogs/"
MIME = "text/plain"
MESSAGES = 50
TEMPLATES = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            uri_template=BEFORE_ID + "{dialog_id}",
            name="dialog",
            title="A dialog",
            description="Its newest messages.",
            mime_type=MIME,
        )
    ]
)


def listed(user: User, cursor: str) -> ListResourcesResult:
    found = list_dialogs(user, ListDialogs(cursor=cursor))
    resources = [
        Resource(
            uri=f"{BEFORE_ID}{one.id}",
            name=one.title or str(one.id),
            description=f"A dialog with {one.agent}, last active {one.last_activity:%Y-%m-%d %H:%M} UTC",
            mime_type=MIME,
        )
        for one in found.dialogs
    ]
    return ListResourcesResult(resources=resources, next_cursor=found.next_cursor)


def read(user: User, uri: str) -> ReadResourceResult:
    found = read_dialog(user, ReadDialog(dialog_id=_dialog_id(uri), limit=MESSAGES))
    text = TextResourceContents(uri=uri, mime_type=MIME, text=words.transcript(found))
    return ReadResourceResult(contents=[text])


def _dialog_id(uri: str) -> UUID:
    try:
        return UUID(uri.removeprefix(BEFORE_ID)) if uri.startswith(BEFORE_ID) else UUID("")
    except ValueError:
        raise NothingThere(f"There is no resource {uri}.") from None
