"""Does a model go on with an answer that ends the request, or does it begin a message of its own?

Servers differ, and one server by template: so the model is tried, once, when its first answer has been cut. A word that
stops in its middle shows that it goes on, since no message begins with the rest of one; a comma shows that the space
after it survives. What is asked for is shorter than what stands before it: nobody passes by saying all of it again.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

from dialogs.common.threads import in_db
from dialogs.models import LLM
from dialogs.models.llm import Prefill, ProviderKind
from dialogs.providers.addresses import is_openai
from dialogs.providers.base import (
    ChatMessage,
    ChatRequest,
    Provider,
    ProviderError,
    ProviderSettings,
    ProviderUnreachable,
    RequestRefused,
    TextDelta,
)
from dialogs.providers.pool import borrowed

logger = logging.getLogger(__name__)
# Somebody waits for the rest of an answer.
PATIENCE_SECONDS = 20.0
MOST_TOKENS = 6
BEGUN = "By the way, since you may want to know: the days of the week are called Monday, Tuesday,"
# What is asked, what the answer ends with so far, and how it must go on.
TRIALS = (
    ("Which days are there?", f"{BEGUN} Wednes", "day"),
    ("Name the days.", BEGUN, " Wed"),
)


async def find_out(llm: LLM, settings: ProviderSettings) -> None:
    """Try it and write it down, unless that is known already. A server that fails now is tried another time."""
    if llm.prefill or (llm.provider.kind == ProviderKind.OPENAI and is_openai(settings.base_url)):
        return
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            goes_on = await _passes_all(llm.model_id, settings)
    except RequestRefused:
        goes_on = False
    except (ProviderError, TimeoutError) as error:
        logger.info("%s could not be tried for going on by itself: %r", llm.slug, error)
        return
    await in_db(_record)(llm, Prefill.CONTINUES if goes_on else Prefill.REFUSED)


def record_refused(llm: LLM) -> None:
    """It passed once, and refuses now: from now on it is asked in words."""
    _record(llm, Prefill.REFUSED)


def _record(llm: LLM, found: Prefill) -> None:
    LLM.objects.filter(pk=llm.pk).update(prefill=found)
    llm.prefill = found


async def _answer(provider: Provider, request: ChatRequest) -> str:
    """Tried twice: a server may close the connection of the answer that was cut a moment ago."""
    for is_last in (False, True):
        try:
            async with aclosing(provider.stream(request)) as events:
                return "".join([event.text async for event in events if isinstance(event, TextDelta)])
        except ProviderUnreachable:
            if is_last:
                raise
    return ""


async def _passes_all(model: str, settings: ProviderSettings) -> bool:
    async with borrowed(settings) as provider:
        for asked, begun, rest in TRIALS:
            messages = (ChatMessage(role="user", content=asked), ChatMessage(role="assistant", content=begun))
            request = ChatRequest(
                model=model,
                messages=messages,
                max_output_tokens=MOST_TOKENS,
                options={"temperature": 0},
                continues=True,
            )
            text = await _answer(provider, request)
            if not text.removeprefix(begun).startswith(rest):
                return False
    return True
