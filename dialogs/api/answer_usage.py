"""What an answer says of itself beside its words: the provider's usage, and under a key of ours what only we know."""

from __future__ import annotations

from typing import Any

from dialogs.models import Generation
from health.monitor.usage import Usage, UsageUnavailable


def usage_of(reported: Usage | UsageUnavailable) -> dict[str, Any] | None:
    """In OpenAI's form; None where the provider did not report it: nothing is estimated here."""
    if not isinstance(reported, Usage):
        return None
    usage: dict[str, Any] = {
        "prompt_tokens": reported.prompt_tokens,
        "completion_tokens": reported.completion_tokens,
        "total_tokens": reported.total_tokens,
    }
    if reported.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": reported.cached_tokens}
    return usage


def reported_of(generation: Generation) -> Usage | UsageUnavailable:
    """As it was recorded."""
    prompt, answered = generation.prompt_tokens, generation.completion_tokens or 0
    if prompt is None:
        return UsageUnavailable()
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=answered,
        total_tokens=generation.total_tokens or prompt + answered,
        cached_tokens=generation.cached_tokens,
    )
