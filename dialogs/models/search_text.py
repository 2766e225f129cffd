"""The words of a message, as `dialogs.transcript.search` cuts them: what a search looks through instead of the text
itself.

The database keeps an index over `words` (migration 0004): FTS5 on SQLite, GIN over a tsvector on PostgreSQL.
"""

from __future__ import annotations

from django.db import models


class SearchText(models.Model):
    message = models.OneToOneField(
        "dialogs.Message", on_delete=models.CASCADE, primary_key=True, related_name="search_text"
    )
    # Each once, with a blank between.
    words = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"words of message {self.message_id}"
