"""What use has taught about the window of an LLM, as the panel and the admin show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from dialogs.llms.guard import bounds_of
from dialogs.models import LLM, Generation
from dialogs.models.llm import WindowSource
from health.tokens.windows import DOUBTED_AFTER, Bounds


@dataclass(frozen=True, kw_only=True)
class LearnedWindow:
    """`bounds` are of the LLM: everybody who speaks with it taught them, and shares them."""

    bounds: Bounds
    refusal_is_doubted: bool
    cut_is_doubted: bool
    cuts: int

    @property
    def is_doubted(self) -> bool:
        """A larger request may be tried again."""
        return self.refusal_is_doubted or self.cut_is_doubted


def learned_window(llm: LLM) -> LearnedWindow | None:
    """None where nothing was learned."""
    known = bounds_of(llm)
    if known == Bounds():
        return None
    now = timezone.now()
    # A window that a refusal named is in force until something larger is read; beside an admin's it is a bound.
    is_bound = bool(known.refused) or (bool(known.window) and llm.context_length_source != WindowSource.REFUSAL)
    return LearnedWindow(
        bounds=known,
        refusal_is_doubted=is_bound and _is_old(known.refused_at, now),
        cut_is_doubted=bool(known.cut_sent) and _is_old(known.cut_at, now),
        cuts=Generation.objects.filter(llm=llm, manifest__cut=True).count() if known.cut_at else 0,
    )


def _is_old(at: datetime | None, now: datetime) -> bool:
    return at is None or now - at > DOUBTED_AFTER


def lowered(generation: Generation | None) -> tuple[int, int] | None:
    """(asked, given): the answer's maximum, where it was lowered because only prompt and answer together were more
    than the window."""
    if generation is None:
        return None
    asked, given = generation.manifest.get("asked"), generation.manifest.get("options", {}).get("max_output_tokens")
    return (asked, given) if asked and given and asked > given else None


def most_asked(generation: Generation | None) -> int | None:
    """The answer's maximum, where the answer ended there and the maximum was all that was asked for; also where the
    server does not count what it wrote."""
    if generation is None or generation.finish_reason != "length" or lowered(generation):
        return None
    most = generation.manifest.get("options", {}).get("max_output_tokens")
    return most if most and generation.completion_tokens in (most, None) else None
