"""The MCP server over a program's input and output, for clients that start it themselves.

The key is looked at for every request: one that is revoked meanwhile is refused.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from mcp.server.stdio import stdio_server

from dialogs.api.auth import authenticate, require_read
from dialogs.api.errors import disabled_owner
from dialogs.api.rate import admit
from dialogs.common.threads import in_db, own_threads
from dialogs.mcp_server.server import Owner, build_server


async def serve(owner: Owner) -> None:
    """Answer until the client closes its end. The SDK keeps everything but the protocol off stdout."""
    server = build_server(owner)
    with own_threads():
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


def owner_with_key(secret: str) -> Owner:
    async def owner() -> User:
        key = await in_db(authenticate)(secret)
        require_read(key)
        await admit(key)
        return key.owner

    return owner


def owner_by_name(username: str) -> Owner:
    async def owner() -> User:
        found = await in_db(User.objects.filter(username=username, is_active=True).first)()
        if found is None:
            raise disabled_owner()
        return found

    return owner
