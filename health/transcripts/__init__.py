"""Chats that were kept in files, as messages in OpenAI's format. `read(data)` knows the form by itself.

`reading` tells the forms apart; `trees` reads exports that keep every branch (OpenAI, Open WebUI), `claude_code`
reads session logs. What a reader leaves out, it says in `notes`.
"""

from __future__ import annotations

from health.transcripts.reading import NotATranscript, Transcript, read

__all__ = ["NotATranscript", "Transcript", "read"]
