"""A database that is away or locked for a while: what must be stored then is tried again. Nothing else is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from math import inf
from time import monotonic
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError

logger = logging.getLogger(__name__)
AGAIN_SECONDS = 1.0

Args = ParamSpec("Args")
Result = TypeVar("Result")
_is_away = False


def persistent(work: Callable[Args, Awaitable[Result]], *, seconds: float = inf) -> Callable[Args, Awaitable[Result]]:
    """`work`, which asks the database: it is done again for so long while that is away."""

    async def called(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        until, has_failed = monotonic() + seconds, False
        while True:
            try:
                result = await work(*args, **kwargs)
            except (InterfaceError, OperationalError) as error:
                if monotonic() >= until:
                    raise
                has_failed = True
                _note(error)
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                # On a full disk others can still read.
                if has_failed:
                    _note(None)
                return result

    return called


def _note(error: Exception | None) -> None:
    """Say once that the database is away, and that it is back: all answers that are under way find it so."""
    global _is_away  # one database for the process
    if error and not _is_away:
        first, *_rest = str(error).splitlines() or [""]
        logger.warning("The database is away or locked; answers that are under way go on: %s", first)
    elif _is_away and not error:
        logger.warning("The database answers again")
    _is_away = error is not None
