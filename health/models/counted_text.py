"""How many tokens a text is to a server that counts itself: asked once, kept by hash, never the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import models
from django.utils.translation import gettext_lazy as _

# Some 100 bytes a row. What is older is asked again.
MOST_ROWS = 100_000
_AT_ONCE = 500


class CountedTexts(models.Manager["CountedText"]):
    def known(self, digests: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, len(digests), _AT_ONCE):
            rows = self.filter(digest__in=digests[start : start + _AT_ONCE])
            found |= dict(rows.values_list("digest", "tokens"))
        return found

    def keep(self, sizes: Mapping[str, int]) -> None:
        """The oldest go where there are too many."""
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
