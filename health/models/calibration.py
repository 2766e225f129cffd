"""What estimates of tokens use: the samples of one LLM, from which `health.tokens.calibration` learns; and the counts
of texts by a server that counts itself, stored by the text's hash, never the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import models
from django.utils.translation import gettext_lazy as _

from health.tokens.calibration import Calibrating, Calibration, RawEstimate, Sample, Uncalibrated
from health.tokens.counters import SERVER

# The most rows, of some 100 bytes each. Older ones are deleted, and asked for again.
MOST_ROWS = 100_000
_AT_ONCE = 500


class LlmCalibration(models.Model):
    llm = models.OneToOneField(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.CASCADE, primary_key=True, related_name="calibration"
    )
    # [[estimated, predicted, reported, of which tools, of which images, how many images]], the newest last, at most 20.
    # Older rows end after the third or fourth number.
    samples = models.JSONField(_("samples"), default=list)
    # The counter of the estimates; empty in older rows, whose counter was the local one.
    counter = models.CharField(_("counter"), max_length=60, blank=True, default="")
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("calibration of an LLM")
        verbose_name_plural = _("calibrations of LLMs")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} ({self.llm_id})"

    @property
    def known(self) -> Calibrating:
        samples = tuple(_sample(*row) for row in self.samples)
        return Calibration(samples=samples) if samples else Uncalibrated()

    @known.setter
    def known(self, known: Calibration) -> None:
        self.samples = [_row(one) for one in known.samples]

    def known_of(self, counter: str) -> Calibrating:
        """What was learned; nothing if the samples are from another counter."""
        is_same = self.counter == counter or (not self.counter and counter != SERVER)
        return self.known if is_same else Uncalibrated()


def _row(one: Sample) -> list[int]:
    return [one.estimated, one.predicted, one.reported, one.raw.tools, one.raw.images, one.raw.pictures]


def _sample(
    estimated: int, predicted: int, reported: int, tools: int = 0, images: int = 0, pictures: int = 0
) -> Sample:
    raw = RawEstimate(text=estimated - tools - images, tools=tools, images=images, pictures=pictures)
    return Sample(raw=raw, predicted=predicted, reported=reported)


class CountedTexts(models.Manager["CountedText"]):
    def known(self, digests: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, len(digests), _AT_ONCE):
            rows = self.filter(digest__in=digests[start : start + _AT_ONCE])
            found |= dict(rows.values_list("digest", "tokens"))
        return found

    def keep(self, sizes: Mapping[str, int]) -> None:
        """Store counts; the oldest are deleted if there are too many."""
        rows = [self.model(digest=digest, tokens=tokens) for digest, tokens in sizes.items()]
        self.bulk_create(rows, ignore_conflicts=True, batch_size=_AT_ONCE)
        newest = self.order_by("-id").values_list("id", flat=True).first()
        self.filter(id__lte=(newest or 0) - MOST_ROWS).delete()


class CountedText(models.Model):
    # SHA-256 of the server's address, the model's name and the text.
    digest = models.CharField(_("hash"), max_length=64, unique=True)
    tokens = models.PositiveIntegerField(_("tokens"))

    objects = CountedTexts()

    class Meta:
        verbose_name = _("counted text")
        verbose_name_plural = _("counted texts")

    def __str__(self) -> str:
        return f"{self.digest[:8]}: {self.tokens}"
