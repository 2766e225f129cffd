"""By which texts are counted: the vocabulary of the model's name, or what staff chose for an LLM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from dialogs.llms.counter import counter_of
from dialogs.models import LLM
from tests.dialogs.compacting_builders import calibrate
from tests.dialogs.pages.views.forms import sent
from tests.dialogs.pages.views.pages import page

WORDS = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"?": 0, "hello": 1}, "unk_token": "?"},
}
TEXT = "incomprehensibilities unquestionably notwithstanding"


@pytest.fixture
def data(settings: LazySettings, tmp_path: Path) -> Path:
    settings.DOMINDS_DATA_DIR = tmp_path
    (tmp_path / "tokenizers").mkdir()
    (tmp_path / "tokenizers" / "words.json").write_text(json.dumps(WORDS))
    return tmp_path


@pytest.fixture
def root(client: Client, sam: User) -> Client:
    User.objects.filter(pk=sam.pk).update(is_staff=True, is_superuser=True)
    client.force_login(User.objects.get(pk=sam.pk))
    return client


def chosen(client: Client, llm: LLM, name: str) -> str:
    """Staff type it on the LLM's page; what the page says then."""
    url = f"/admin/dialogs/llm/{llm.pk}/change/"
    answer = client.post(url, {**sent(page(client, url), "llm_form"), "tokenizer": name}, follow=True)
    return answer.content.decode()


@pytest.mark.parametrize(("name", "counter"), [("words.json", "words.json"), ("gpt-4o", "o200k_base")])
def test_a_file_or_another_model_that_staff_name_counts_with_its_vocabulary(
    root: Client, llm: LLM, data: Path, name: str, counter: str
) -> None:
    chosen(root, llm, name)

    llm.refresh_from_db()
    assert counter_of(llm).name == counter
    # In the file each word is one.
    assert (counter_of(llm).count([TEXT]) == [3]) is (name == "words.json")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("wordpiece", "Unsupported tokenizer: wordpiece"),
        ("nowhere.json", "cannot be used"),
        ("../../words.json", ""),
        ("/etc/passwd.json", "cannot be used"),
    ],
)
def test_what_cannot_count_is_refused_and_no_other_folder_is_read(
    root: Client, llm: LLM, data: Path, name: str, why: str
) -> None:
    (data.parent / "words.json").write_text("{}")

    said = chosen(root, llm, name)

    llm.refresh_from_db()
    assert why in said
    assert (llm.tokenizer == "") is bool(why)


def test_a_file_that_is_gone_later_stops_nothing(llm: LLM, data: Path) -> None:
    calibrate(llm)
    llm.tokenizer = "gone.json"

    assert counter_of(llm).count([TEXT])[0] > 3
