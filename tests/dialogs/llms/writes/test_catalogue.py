"""The catalogue in the database: what follows the files, and what an admin has made his own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from dialogs.llms.writes.catalogue import CatalogueError, catalogue_problem, load_catalogue
from dialogs.llms.writes.providers import record_limits
from dialogs.models import LLM, Provider
from dialogs.providers.base import ModelFacts

OVERRIDE = """\
providers:
  openai:
    name: Our gateway
    apiType: openai
    baseUrl: http://gateway.internal/v1
    models:
      ours:
        context_length: 32768
  local:
    apiType: llamacpp
    baseUrl: http://127.0.0.1:8080
    models:
      tiny:
        context_length: {window}
"""


@pytest.fixture
def file(tmp_path: Path, db: Any) -> Any:
    """The override file; absent until a test writes it."""
    path = tmp_path / "llm.yaml"
    with override_settings(DOMINDS_LLM_FILE=path, DOMINDS_LLM_FILE_REQUIRED=False):
        yield path


def write(file: Path, window: int = 4096) -> None:
    file.write_text(OVERRIDE.format(window=window))


def llm(name: str) -> LLM:
    provider, _, model_id = name.partition("/")
    return LLM.objects.get(provider__name=provider, model_id=model_id)


def test_the_built_in_catalogue_has_twenty_sourced_models_and_more(file: Path) -> None:
    load_catalogue()

    models = LLM.objects.filter(origin="catalogue", enabled=True)
    assert models.count() >= 20
    assert Provider.objects.filter(origin="catalogue").count() >= 10
    for model in models:
        assert model.context_length or model.input_length, model.slug
        assert model.source_url.startswith("https://"), model.slug
        assert model.context_length_source == "file", model.slug
    assert not Provider.objects.filter(origin="catalogue", api_key_env="").exists()


def test_small_windows_of_the_catalogue_leave_room_for_caution(file: Path) -> None:
    load_catalogue()

    small = llm("openrouter/qwen/qwen3-32b")
    assert (small.context_length, small.optimal_max_tokens) == (40_960, 30_720)
    assert not [
        model.slug
        for model in LLM.objects.all()
        if (model.optimal_max_tokens or 100_000) >= (model.context_length or model.input_length or 0) * 9 // 10
    ]


def test_loading_again_changes_nothing_and_asks_little(file: Path, django_assert_max_num_queries: Any) -> None:
    load_catalogue()

    with django_assert_max_num_queries(4):  # two reads and the savepoint
        load_catalogue()


def test_an_override_takes_the_place_of_a_whole_provider(file: Path) -> None:
    load_catalogue()
    write(file)

    load_catalogue()

    provider = Provider.objects.get(name="openai")
    assert (provider.label, provider.base_url, provider.origin) == ("Our gateway", "http://gateway.internal/v1", "file")
    assert list(provider.llms.filter(enabled=True).values_list("model_id", flat=True)) == ["ours"]
    assert llm("local/tiny").optimal_max_tokens == 3072
    assert not llm("openai/gpt-5.5").enabled


def test_removing_the_override_restores_the_default(file: Path) -> None:
    load_catalogue()
    before = list(LLM.objects.filter(enabled=True).values_list("pk", flat=True))
    write(file)
    load_catalogue()

    file.unlink()
    load_catalogue()

    provider = Provider.objects.get(name="openai")
    assert (provider.label, provider.base_url, provider.origin) == ("OpenAI", "https://api.openai.com/v1", "catalogue")
    assert sorted(LLM.objects.filter(enabled=True, provider__enabled=True).values_list("pk", flat=True)) == sorted(
        before
    )
    assert not Provider.objects.get(name="local").enabled


def test_a_changed_file_changes_the_rows(file: Path) -> None:
    write(file)
    load_catalogue()

    write(file, window=8192)
    load_catalogue()

    assert llm("local/tiny").context_length == 8192
    assert llm("local/tiny").optimal_max_tokens == 6144


def test_what_an_admin_edited_stays(file: Path) -> None:
    write(file)
    load_catalogue()
    LLM.objects.filter(model_id="tiny").update(optimal_max_tokens=1000, label="Mine")

    write(file, window=8192)
    load_catalogue()

    tiny = llm("local/tiny")
    assert (tiny.label, tiny.optimal_max_tokens, tiny.context_length) == ("Mine", 1000, 8192)


@pytest.mark.parametrize("source", ["server", "admin"])
def test_a_window_from_elsewhere_stays_even_when_it_is_the_same(file: Path, source: str) -> None:
    write(file)
    load_catalogue()
    LLM.objects.filter(model_id="tiny").update(context_length_source=source)

    write(file, window=8192)
    load_catalogue()

    assert (llm("local/tiny").context_length, llm("local/tiny").context_length_source) == (4096, source)


def test_a_window_read_from_the_server_comes_before_the_file_s(file: Path) -> None:
    write(file)
    load_catalogue()

    record_limits(llm=llm("local/tiny"), facts=ModelFacts(model_id="tiny", context_length=2048))
    load_catalogue()

    assert llm("local/tiny").context_length == 2048


def test_what_an_admin_switched_off_stays_off_and_on_stays_on(file: Path) -> None:
    write(file)
    load_catalogue()
    Provider.objects.filter(name="anthropic").update(enabled=False)
    LLM.objects.filter(model_id="gpt-5.5").update(enabled=True)

    file.unlink()
    load_catalogue()
    Provider.objects.filter(name="local").update(enabled=True)
    load_catalogue()

    assert not Provider.objects.get(name="anthropic").enabled
    assert Provider.objects.get(name="local").enabled


def test_an_admin_s_own_provider_of_the_same_name_is_left_alone(file: Path) -> None:
    Provider.objects.create(name="openai", kind="openai", base_url="http://mine")

    load_catalogue()

    assert Provider.objects.get(name="openai").base_url == "http://mine"
    assert not LLM.objects.filter(provider__name="openai").exists()


def test_an_admin_s_own_model_in_a_provider_of_the_catalogue_is_left_alone(file: Path) -> None:
    load_catalogue()
    mine = LLM.objects.create(provider=Provider.objects.get(name="openai"), model_id="mine", context_length=5)

    load_catalogue()

    mine.refresh_from_db()
    assert (mine.enabled, mine.context_length) == (True, 5)


def test_a_wrong_file_changes_nothing(file: Path) -> None:
    load_catalogue()
    file.write_text(OVERRIDE.format(window="many"))

    with pytest.raises(CatalogueError, match=r"llm\.yaml, line 14: providers\.local\.models\.tiny\.context_length"):
        load_catalogue()

    assert Provider.objects.get(name="openai").label == "OpenAI"
    assert not Provider.objects.filter(name="local").exists()


def test_a_missing_file_matters_only_when_somebody_named_it(file: Path) -> None:
    assert catalogue_problem() is None

    with override_settings(DOMINDS_LLM_FILE_REQUIRED=True):
        assert "there is no such file" in str(catalogue_problem())


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    file.write_bytes(b"providers:\n  caf\xe9: {}\n")
    assert "llm.yaml, line 2: is not written in UTF-8" in str(catalogue_problem())

    file.unlink()
    file.mkdir()
    assert "cannot be read" in str(catalogue_problem())
