"""The counter of tokens for an LLM, corrected by its reports; and counting with the server's own tokenizer (llama.cpp,
vLLM), with a cache of the sizes.

What the server cannot be asked (no time left, no answer, inside an event loop or a transaction) is counted here: a
failure costs only exactness.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from math import ceil
from pathlib import Path

import httpx2
from django.conf import settings
from django.db import connection

from dialogs.llms.reads import settings_for
from dialogs.models import LLM
from dialogs.providers.base import ProviderError, ProviderSettings
from dialogs.providers.registry import KINDS, load
from dialogs.providers.tokenizing import CannotCount, CountsTokens
from health.compaction.terms.ports import Counter, Grade
from health.models import CountedText, LlmCalibration
from health.tokens.calibration import Calibrating, Calibration, Correction, Uncalibrated
from health.tokens.corrected import CautiousCounter, CorrectedCounter
from health.tokens.counters import SERVER, Memory, counter_named

logger = logging.getLogger(__name__)
# How long all questions of one request may take together.
SECONDS = 0.5
# How long a server is not asked again: one that does not count, and one that did not answer.
SILENCE_SECONDS, PAUSE_SECONDS = 3600.0, 30.0
# The pause after a request that ran out of time.
BREATH_SECONDS = 5.0
# A text for trying the server: people's texts are not sent to a path that may not exist.
TRIAL = "one two three"
# By how much the server's sizes differ from ours is judged by so many tokens at least, in about so many characters.
ENOUGH_TOKENS, ENOUGH_CHARS = 200, 20_000


@dataclass
class KnownServer:
    """What this process knows of one server and model. `counts` None: nobody knows yet."""

    counts: bool | None = None
    again_at: float = 0.0
    memory: Memory = field(default_factory=Memory)

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.again_at

    def leave_alone(self, seconds: float) -> None:
        self.again_at = time.monotonic() + seconds


@cache
def known_server(kind: str, base_url: str, model: str) -> KnownServer:
    return KnownServer()


def server_counter(llm: LLM, plain: Counter) -> Counter:
    """The server of this LLM as a counter, if it counts and our own (`plain`) is not exact; else `plain`."""
    provider = llm.provider
    if plain.grade is Grade.EXACT or not KINDS[provider.kind].may_count or not llm.is_usable:
        return plain
    asked = known_server(provider.kind, provider.base_url, llm.model_id)
    if not asked.counts and asked.is_due and _may_ask():
        asked.counts = bool(_told(llm, asked, [TRIAL], SECONDS))
    return ServerCounter(llm, plain, asked) if asked.counts else plain


@dataclass
class ServerCounter:
    """For one request: it asks for at most `left` seconds. `plain` counts the rest, scaled by the ratio of the server's
    sizes to ours in the same request."""

    llm: LLM
    plain: Counter
    asked: KnownServer = field(repr=False)
    left: float = SECONDS
    _known: Mapping[str, int] = field(default_factory=dict, repr=False)

    name = SERVER
    grade = Grade.EXACT

    @property
    def per_message(self) -> int:
        return self.plain.per_message

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text alone. Never raises."""
        sizes = {**dict(zip(texts, self.asked.memory.recall(texts), strict=True)), "": 0}
        missing = [text for text, size in sizes.items() if size is None]
        if missing and _may_ask():
            sizes |= self._kept_or_told(missing)
        known = {text: size for text, size in sizes.items() if size is not None}
        if len(known) > len(self._known):
            self._known = known
        guessed = self._guessed([text for text in texts if text not in known])
        return [known[text] if text in known else guessed[text] for text in texts]

    def _kept_or_told(self, texts: list[str]) -> dict[str, int]:
        """Sizes from the cache, and from the server for the rest, which are cached."""
        place = f"{self.llm.provider.base_url}\n{self.llm.model_id}\n"
        digests = {text: hashlib.sha256((place + text).encode(errors="replace")).hexdigest() for text in texts}
        kept = CountedText.objects.known(list(digests.values()))
        found = {text: kept[digest] for text, digest in digests.items() if digest in kept}
        told = self._told([text for text in texts if text not in found])
        CountedText.objects.keep({digests[text]: size for text, size in told.items()})
        self.asked.memory.keep((found | told).items())
        return found | told

    def _told(self, texts: list[str]) -> dict[str, int]:
        if not texts or self.left <= 0 or not self.asked.is_due:
            return {}
        begun = time.monotonic()
        told = _told(self.llm, self.asked, texts, self.left)
        self.left -= time.monotonic() - begun
        return told

    def _guessed(self, texts: list[str]) -> dict[str, int]:
        if not texts:
            return {}
        ratio = self._ratio()
        if ratio is None:
            return dict(zip(texts, CautiousCounter(self.plain, self.plain).count(texts), strict=True))
        return {text: ceil(ratio * size) for text, size in zip(texts, self.plain.count(texts), strict=True)}

    def _ratio(self) -> float | None:
        """The server's tokens divided by ours, in this request."""
        chars = accumulate(map(len, self._known), initial=0)
        sample = [text for text, before in zip(self._known, chars, strict=False) if before < ENOUGH_CHARS]
        ours = sum(self.plain.count(sample))
        return sum(self._known[text] for text in sample) / ours if ours >= ENOUGH_TOKENS else None


def _told(llm: LLM, asked: KnownServer, texts: list[str], seconds: float) -> dict[str, int]:
    """The server's sizes of these texts. If it fails it is not asked again for a while."""
    found: list[int | None] = []
    try:
        found = _ask(settings_for(llm.provider), texts, llm.model_id, seconds)
    except CannotCount as error:
        asked.counts = False
        asked.leave_alone(SILENCE_SECONDS)
        logger.info("%s does not count tokens: %s", llm.provider, error)
    except (httpx2.HTTPError, httpx2.InvalidURL, ProviderError) as error:
        logger.info("%s was asked to count tokens in vain: %s", llm.provider, type(error).__name__)
    told = {text: size for text, size in zip(texts, found, strict=False) if size is not None}
    if len(told) < len(texts) and asked.is_due:
        asked.leave_alone(BREATH_SECONDS if told else PAUSE_SECONDS)
    return told


def _ask(settings: ProviderSettings, texts: list[str], model: str, seconds: float) -> list[int | None]:
    provider: object = load(settings.kind)
    if settings.problem or not isinstance(provider, CountsTokens):
        raise CannotCount(settings.problem or f"{settings.kind} has no path for it.")
    return provider.count_tokens(settings, texts, model, seconds=seconds)


def _may_ask() -> bool:
    """Not in an event loop or a transaction: asking would block it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return not connection.in_atomic_block
    return False


def calibration_of(llm: LLM) -> Calibrating:
    """The calibration of the counter in use; reports on another counter do not apply."""
    return _calibration(llm, _plain(llm))


def _calibration(llm: LLM, plain: Counter) -> Calibrating:
    try:
        return llm.calibration.known_of(plain.name)
    except LlmCalibration.DoesNotExist:
        return Uncalibrated()


def _plain(llm: LLM) -> Counter:
    named = counter_named(llm.tokenizer, model=llm.model_id, data=Path(settings.DOMINDS_DATA_DIR))
    return server_counter(llm, named)


def counter_of(llm: LLM) -> Counter:
    """The counter for this LLM, corrected by what its server has reported so far.

    With a margin where it does not have the model's own vocabulary, until enough reports have calibrated it.
    """
    return _corrected(llm, lambda known: known.trusted)


def counter_without_tools(llm: LLM) -> Counter:
    """The counter for a request of another kind than the dialog's, which offers no tools: corrected upwards only."""
    return _corrected(llm, lambda known: Correction(ratio=max(1.0, known.ratio)))


def _corrected(llm: LLM, correction: Callable[[Calibration], Correction]) -> Counter:
    plain = _plain(llm)
    known = _calibration(llm, plain)
    likely = CorrectedCounter(plain, correction(known)) if isinstance(known, Calibration) else plain
    is_sure = plain.grade is Grade.EXACT or (isinstance(known, Calibration) and known.is_trusted)
    return likely if is_sure else CautiousCounter(likely, plain)
