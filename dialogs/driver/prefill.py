"""Tests whether a model continues an assistant message that ends the request (prefill), or begins a new message.

This differs by server and chat template, so the model is tested once, after its first cut answer. The test's message
stops within a word: only a model that continues it begins with the rest of that word; and after a comma: the space that
follows must survive. The expected rest is shorter than the message, so that repeating all of it does not pass.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

from dialogs.common.threads import in_db
from dialogs.models import LLM
from dialogs.models.llm import Prefill
from dialogs.models.provider import ProviderKind
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
# Short: somebody waits for the rest of an answer.
PATIENCE_SECONDS = 20.0
MOST_TOKENS = 6
BEGUN = "By the way, since you may want to know: the days of the week are called Monday, Tuesday,"
# The question, the answer so far, and how it must continue.
TRIALS = (
    ("Which days are there?", f"{BEGUN} Wednes", "day"),
    ("Name the days.", BEGUN, " Wed"),
)


async def find_out(llm: LLM, settings: ProviderSettings) -> None:
    """Test it and store the result, unless it is known. After a failure of the server it is tested another time."""
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
    """Store that the server now refuses prefill: from now on the model is asked to continue by a user message."""
    _record(llm, Prefill.REFUSED)


def _record(llm: LLM, found: Prefill) -> None:
    LLM.objects.filter(pk=llm.pk).update(prefill=found)
    llm.prefill = found


async def _answer(provider: Provider, request: ChatRequest) -> str:
    """Tried twice: the server may close the connection, which carried the answer that was just cut."""
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
