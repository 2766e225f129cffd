"""How long the pruning agent is likely to take, and what it costs: from the recent answers of the model that prunes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from dialogs.models import LLM, Generation
from health.models import LlmPrice

# Fewer answers say little; older ones may be of another machine.
LEAST_ANSWERS, RECENT = 3, 20
# So many prompt tokens that were not cached must have been read, or the first word tells nothing of reading.
LEAST_READ = 50
# What the pruning agent is told beside the messages; and of these, the share that its answer may have.
INSTRUCTIONS_TOKENS, ANSWER_SHARE, LEAST_ANSWER = 300, 0.1, 100
A_MILLION = 1_000_000


@dataclass(frozen=True)
class Rates:
    """Tokens a second, as the provider's reports and the clock have them."""

    prompt: float
    completion: float


def rates_of(llm: LLM) -> Rates | None:
    """The middle one of its recent answers; None where too few are known."""
    known = Generation.objects.filter(
        llm=llm,
        status=Generation.Status.FINISHED,
        prompt_tokens__isnull=False,
        completion_tokens__gt=1,
        first_token_at__isnull=False,
        finished_at__isnull=False,
    )
    rows = list(known.defer("manifest", "partial_text", "usage_raw").order_by("-pk")[:RECENT])
    prompt = _rate(
        (row.prompt_tokens - (row.cached_tokens or 0), row.started_at, row.first_token_at)
        for row in rows
        if row.prompt_tokens and row.prompt_tokens - (row.cached_tokens or 0) >= LEAST_READ
    )
    completion = _rate((row.completion_tokens or 0, row.first_token_at, row.finished_at) for row in rows)
    return Rates(prompt, completion) if prompt and completion else None


def foreseen(llm: LLM, tokens: int) -> dict[str, Any]:
    """Seconds and cost of pruning messages of so many estimated tokens, as far as they can be known."""
    prompt = tokens + INSTRUCTIONS_TOKENS
    answer = max(LEAST_ANSWER, round(ANSWER_SHARE * tokens))
    rates = rates_of(llm)
    price = LlmPrice.objects.filter(llm=llm).values_list("per_million", flat=True).first()
    seconds = {"seconds": round(prompt / rates.prompt + answer / rates.completion, 1)} if rates else {}
    return seconds | ({"cost": float(price) * prompt / A_MILLION} if price is not None else {})


def _rate(rows: Iterable[tuple[int, datetime | None, datetime | None]]) -> float | None:
    times = ((tokens, (until - since).total_seconds()) for tokens, since, until in rows if since and until)
    found = [tokens / seconds for tokens, seconds in times if seconds > 0]
    return median(found) if len(found) >= LEAST_ANSWERS else None
