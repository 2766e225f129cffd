"""What the limits of an LLM would make of dialogs as they are: levels and counts, no titles."""

from __future__ import annotations

from django.db.models import OuterRef, Subquery

from dialogs.llms.reads.providers import configured
from dialogs.models import LLM, Dialog, Generation
from health.monitor.levels import Level, context_window, level, thresholds


def levels_today(llm: LLM, *, dialogs: int = 5) -> list[Level]:
    """The level of the newest measured prompt of each of the newest dialogs, by the limits in force now."""
    window = context_window(configured(llm))
    if window is None:
        return []
    limits = thresholds(configured(llm), window=window)
    measured = Generation.objects.filter(dialog=OuterRef("pk"), prompt_tokens__isnull=False).order_by("-id")
    newest = Dialog.objects.filter(llm=llm).annotate(prompt=Subquery(measured.values("prompt_tokens")[:1]))
    prompts = newest.exclude(prompt=None).order_by("-active_at").values_list("prompt", flat=True)
    return [level(prompt, limits) for prompt in prompts[:dialogs]]
