"""What a provider said one generation cost, or that it did not say. Never an estimate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Token counts as reported. `prompt_tokens` is the whole input, cached tokens included."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int | None = None


@dataclass(frozen=True)
class UsageUnavailable:
    """The provider reported no usable usage. `why` is for people, for example "no usage in the stream"."""

    why: str = ""
