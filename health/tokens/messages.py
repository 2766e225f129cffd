"""How many tokens a whole request is likely to be: messages in OpenAI's format, and the tools sent with them.

The same sum as over compaction's units (`ports.counted`) and their overhead, without making units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from health.compaction.terms.wire import attached_to, text_of
from health.tokens.counters import count_text, counter_for
from health.tokens.families import family_of
from health.tokens.images import media_tokens
from health.tokens.tools import as_sent


def count_messages(messages: Sequence[Mapping[str, Any]], model: str, tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Estimated prompt tokens: contents, reasoning, calls, names, images, and their frames."""
    counter = counter_for(model)
    texts = [text for message in messages for text in (text_of(message), attached_to(message))]
    media = sum(media_tokens(message, model) for message in messages)
    return len(messages) * counter.per_message + sum(counter.count(texts)) + media + overhead_tokens(model, tools)


def overhead_tokens(model: str, tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """What is sent besides messages: the schemas of tools, and the opening of the prompt and of the answer."""
    return family_of(model).opening + tools_tokens(model, tools)


def tools_tokens(model: str, tools: Sequence[Mapping[str, Any]]) -> int:
    family = family_of(model)
    return count_text(as_sent(tools, family.tools_as), model) + (family.calling if tools else 0)
