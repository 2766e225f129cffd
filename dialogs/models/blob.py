"""Immutable text by its hash: instructions and other parts of a request that are not messages."""

from __future__ import annotations

from django.db import models


class Blob(models.Model):
    sha256 = models.CharField(max_length=64, primary_key=True)
    content = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256[:12]
