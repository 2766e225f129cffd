"""Which of a client's options goes where: the tables, and what must be in none of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from dialogs.providers.base import RequestRefused
from dialogs.providers.options import (
    OF_ANTHROPIC,
    OF_OLLAMA,
    OF_OPENAI,
    OF_OTHERS,
    OF_TOOLS,
    Data,
    ImageAt,
    Names,
    Part,
    Text,
    as_texts,
    chosen,
    read_part,
)

TABLES = [OF_OPENAI, OF_OTHERS, OF_ANTHROPIC, OF_OLLAMA, OF_TOOLS]


@pytest.mark.parametrize(
    "option",
    [
        # Dominds' own.
        *("model", "messages", "stream", "stream_options", "tools", "max_tokens", "max_completion_tokens", "system"),
        # They cut the prompt without a word, or choose its window.
        *(
            "truncate_prompt_tokens",
            "context_shift",
            "n_keep",
            "num_keep",
            "num_ctx",
            "truncate",
            "shift",
            "transforms",
        ),
        # They keep the conversation elsewhere.
        *("store", "metadata"),
        # No answer of ours could carry what they ask for.
        *("n", "logprobs", "top_logprobs", "modalities", "audio"),
    ],
)
def test_some_options_go_nowhere(option: str) -> None:
    assert all(option not in names and option not in names.values() for names in TABLES)


def test_every_option_that_goes_somewhere_is_documented() -> None:
    told = (Path(settings.BASE_DIR) / "docs" / "providers.md").read_text()
    families = tuple(re.findall(r"`(\w+_)\*`", told))

    silent = {name for names in TABLES for name in names if f"`{name}`" not in told and not name.startswith(families)}

    assert silent == set()


@pytest.mark.parametrize("names", TABLES)
def test_unknown_options_and_nulls_are_left_out(names: Names) -> None:
    first, *_ = names

    assert chosen({"unheard_of": 1, first: None}, names) == {}


def test_zero_and_false_are_values() -> None:
    options = {"temperature": 0, "cache_prompt": False, "parallel_tool_calls": False}

    assert chosen(options, OF_OTHERS | OF_TOOLS) == options


@pytest.mark.parametrize(
    ("stop", "texts"),
    [("end", ["end"]), (["a", "b"], ["a", "b"]), (["a", 3, None], ["a"]), ({"a": 1}, []), (None, [])],
)
def test_a_stop_is_one_text_or_several(stop: Any, texts: list[str]) -> None:
    assert as_texts(stop) == texts


# Content parts as clients really write them.


PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize(
    ("part", "read"),
    [
        ({"type": "text", "text": "Look"}, Text("Look")),
        ({"type": "refusal", "refusal": "No."}, Text("No.")),
        ({"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}, Data("image/png", "iVBORw0KGgo=")),
        ({"type": "image_url", "image_url": PNG}, Data("image/png", "iVBORw0KGgo=")),
        ({"type": "image_url", "image_url": {"url": "data:image/jpg;base64,/9j/"}}, Data("image/jpeg", "/9j/")),
        ({"type": "image_url", "image_url": {"url": "https://host/a.png"}}, ImageAt("https://host/a.png")),
        # Parameters may stand before the word base64.
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;name=a.pdf;base64,JVBE", "filename": "a.pdf"}},
            Data("application/pdf", "JVBE"),
        ),
    ],
)
def test_a_part_is_read(part: dict[str, Any], read: Part) -> None:
    assert read_part(part) == read


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}, "'input_audio'"),
        ({"type": "file", "file": {"file_id": "file-1"}}, "'file' by its id"),
        ({"type": "video_url", "video_url": {"url": "https://host/a.mp4"}}, "'video_url'"),
        ({"text": "without a type"}, "''"),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "data URL"),
        ({"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}}, "data URL"),
        ({"type": "image_url", "image_url": {"url": "iVBORw0KGgo="}}, "data URL"),
        ({"type": "image_url"}, "data URL"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_words(part: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        read_part(part)

    assert words in str(caught.value)
    assert caught.value.status == 400
