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
    rows = list(
        Generation.objects.filter(
            llm=llm,
            status=Generation.Status.FINISHED,
            prompt_tokens__isnull=False,
            completion_tokens__gt=1,
            first_token_at__isnull=False,
            finished_at__isnull=False,
        )
        .order_by("-pk")
        .values_list(
            "prompt_tokens", "cached_tokens", "completion_tokens", "started_at", "first_token_at", "finished_at"
        )[:RECENT]
    )
    # The query leaves out what lacks any of these.
    known = [row for row in rows if None not in (row[0], row[2], row[4], row[5])]
    read = [((prompt or 0) - (cached or 0), begun, first) for prompt, cached, _said, begun, first, _end in known]
    prompt = _rate((tokens, since, until) for tokens, since, until in read if until and tokens >= LEAST_READ)
    completion = _rate(
        (said, first, end) for _prompt, _cached, said, _begun, first, end in known if said and first and end
    )
    return Rates(prompt, completion) if prompt and completion else None


def foreseen(llm: LLM, tokens: int) -> dict[str, Any]:
    """Seconds and cost of pruning messages of so many estimated tokens, as far as they can be known."""
    prompt = tokens + INSTRUCTIONS_TOKENS
    answer = max(LEAST_ANSWER, round(ANSWER_SHARE * tokens))
    rates = rates_of(llm)
    price = LlmPrice.objects.filter(llm=llm).values_list("per_million", flat=True).first()
    seconds = {"seconds": round(prompt / rates.prompt + answer / rates.completion, 1)} if rates else {}
    return seconds | ({"cost": float(price) * prompt / A_MILLION} if price is not None else {})


def _rate(rows: Iterable[tuple[int, datetime, datetime]]) -> float | None:
    found = [tokens / seconds for tokens, since, until in rows if (seconds := (until - since).total_seconds()) > 0]
    return median(found) if len(found) >= LEAST_ANSWERS else None
