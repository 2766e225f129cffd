"""Reading one catalogue file: what it may say, and how precisely a mistake is named."""

from __future__ import annotations

import re

import pytest

from dialogs.llms.catalogue_file import CatalogueError, ModelEntry, ProviderEntry, read_catalogue
from dialogs.models.provider import ProviderKind

GOOD = """\
providers:
  local:
    name: My server
    apiType: openai-compatible
    baseUrl: http://127.0.0.1:8080/v1/
    apiKeyEnvVar: LOCAL_KEY
    models:
      org/tiny-1.5:
        name: Tiny
        context_length: 8192
        input_length: 8000
        output_length: 1024
        optimal_max_tokens: 4000
        critical_max_tokens: 7000
        caution_remediation_cadence_generations: 3
        source_url: https://example.com/tiny
      bare:
"""


def read(text: str) -> dict[str, ProviderEntry]:
    return read_catalogue(text, file="llm.yaml")


def test_every_field_of_the_seed_is_read() -> None:
    tiny = ModelEntry(
        name="Tiny",
        context_length=8192,
        input_length=8000,
        output_length=1024,
        optimal_max_tokens=4000,
        critical_max_tokens=7000,
        caution_remediation_cadence_generations=3,
        source_url="https://example.com/tiny",
    )

    found = read(GOOD.replace("      bare:\n", ""))

    assert found == {
        "local": ProviderEntry(
            kind="openai",
            base_url="http://127.0.0.1:8080/v1",
            name="My server",
            api_key_env="LOCAL_KEY",
            models={"org/tiny-1.5": tiny},
        )
    }


@pytest.mark.parametrize("text", ["", "# only a comment\n", "providers:\n", "{}\n", "---\n"])
def test_a_file_may_be_empty(text: str) -> None:
    assert read(text) == {}


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("openai-compatible", "openai"),
        ("anthropic-compatible", "anthropic"),
        *((kind, kind) for kind in ProviderKind if kind != ProviderKind.SCRIPTED),
    ],
)
def test_each_api_type_is_a_kind(written: str, kind: str) -> None:
    text = f"providers:\n  a:\n    apiType: {written}\n    baseUrl: http://host\n"

    assert read(text)["a"].kind == kind


@pytest.mark.parametrize(("written", "tokens"), [("8192", 8192), ("8192.9", 8192), ("1_000", 1000), ("1e5", None)])
def test_a_number_is_rounded_down(written: str, tokens: int | None) -> None:
    text = GOOD.replace("context_length: 8192", f"context_length: {written}")
    if tokens is None:  # YAML reads 1e5 as a text
        with pytest.raises(CatalogueError, match="must be a whole number"):
            read(text)
        return

    assert read(text)["local"].models["org/tiny-1.5"].context_length == tokens


def test_compaction_is_switched_off_for_a_model() -> None:
    """A bare `off`, which YAML reads as false."""
    text = GOOD.replace("context_length: 8192", "context_length: 8192\n        compaction: off")

    assert read(text)["local"].models["org/tiny-1.5"].compaction == "off"
    assert read(GOOD)["local"].models["org/tiny-1.5"].compaction == "automatic"
    with pytest.raises(CatalogueError, match="must be one of: automatic, off"):
        read(text.replace("compaction: off", "compaction: sometimes"))


def test_a_key_without_a_value_counts_as_left_out_and_a_model_of_which_nothing_is_written_is_one_all_the_same() -> None:
    models = read(GOOD.replace("context_length: 8192", "context_length:"))["local"].models

    assert models["org/tiny-1.5"].context_length is None
    assert models["bare"] == ModelEntry()


@pytest.mark.parametrize("number", ["0", "-5", "0.5", "big", ".nan", "true", "99999999999"])
@pytest.mark.parametrize(
    ("name", "line"),
    [("optimal_max_tokens", 13), ("critical_max_tokens", 14), ("caution_remediation_cadence_generations", 15)],
)
def test_a_threshold_that_is_none_counts_as_left_out_and_is_told(name: str, line: int, number: str) -> None:
    ignored: list[CatalogueError] = []

    found = read_catalogue(re.sub(f"{name}: .*", f"{name}: {number}", GOOD), file="llm.yaml", ignored=ignored)

    assert getattr(found["local"].models["org/tiny-1.5"], name) is None
    assert [(one.file, one.line, one.field) for one in ignored] == [("llm.yaml", line, f"{MODEL}.{name}")]
    assert "The default counts" in str(ignored[0])


MODEL = "providers.local.models.org/tiny-1.5"


@pytest.mark.parametrize(
    ("old", "new", "place", "problem"),
    [
        # Keys written twice, at each depth.
        ("    name: My server", "    name: A\n    name: B", "llm.yaml, line 4: providers.local.name", "written twice"),
        ("      bare:", "      org/tiny-1.5: {}", f"llm.yaml, line 17: {MODEL}", "is written twice"),
        ("        name: Tiny", "        name: A\n        name: B", f"llm.yaml, line 10: {MODEL}.name", "written twice"),
        ("      bare:", "  local:\n    apiType: openai", "llm.yaml, line 17: providers.local", "is written twice"),
        # Unknown fields.
        ("providers:", "provider:", "llm.yaml, line 1: provider", "is a field that this version does not know"),
        ("apiKeyEnvVar: LOCAL_KEY", "apiKey: secret", "llm.yaml, line 6: providers.local.apiKey", "does not know"),
        ("LOCAL_KEY", "PATH", "llm.yaml, line 6: providers.local.apiKeyEnvVar", "must have KEY or TOKEN in its name"),
        ("output_length", "outputLength", f"llm.yaml, line 12: {MODEL}.outputLength", "does not know"),
        ("context_length: 8192", "contextLength:", f"llm.yaml, line 10: {MODEL}.contextLength", "does not know"),
        ("name: My server", "label:", "llm.yaml, line 3: providers.local.label", "does not know"),
        ("apiType: openai", "apitype: openai", "llm.yaml, line 4: providers.local.apitype", "does not know"),
        # Wrong types.
        ("8192", "big", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", '"8192"', f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", "true", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", ".nan", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", ".inf", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", "2026-01-01", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", "!!int x", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", "!!bool x", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", "!!int ''", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", f"1{':1' * 200}.5", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", "!!timestamp x", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", "!!python/name:os.system x", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", "[1, 2]", f"llm.yaml, line 10: {MODEL}.context_length", "must be a whole number"),
        ("8192", "0", f"llm.yaml, line 10: {MODEL}.context_length", "must not be less than 1."),
        ("8192", "-5", f"llm.yaml, line 10: {MODEL}.context_length", "must not be less than 1."),
        ("8192", "99999999999", f"llm.yaml, line 10: {MODEL}.context_length", "not be more than 2,147,483,647"),
        ("name: My server", "name: 5", "llm.yaml, line 3: providers.local.name", "must be a text"),
        ("name: My server", "name: {a: b}", "llm.yaml, line 3: providers.local.name", "must be a text"),
        ("name: My server", f"name: {'x' * 200}", "llm.yaml, line 3: providers.local.name", "longer than 120"),
        ("apiType: openai-compatible", "apiType: mock", "llm.yaml, line 4: providers.local.apiType", "must be one of"),
        ("https://example.com/tiny", "example", f"llm.yaml, line 16: {MODEL}.source_url", "must be a web address"),
        # Not a mapping.
        ("      bare:", "      bare: 5", "llm.yaml, line 17: providers.local.models.bare", "must be an object"),
        ("      bare:", "      [a]: {}", "llm.yaml, line 17: providers.local.models", "must have texts as keys"),
        # What must be there, and what it may look like.
        ("    apiType: openai-compatible\n", "", "llm.yaml, line 2: providers.local.apiType", "is missing"),
        ("    baseUrl: http://127.0.0.1:8080/v1/\n", "", "llm.yaml, line 2: providers.local.baseUrl", "is missing"),
        ("http://127.0.0.1:8080/v1/", "no url", "llm.yaml, line 5: providers.local.baseUrl", "no blanks"),
        ("http://127.0.0.1:8080/v1/", "ftp://h", "llm.yaml, line 5: providers.local.baseUrl", "starts with http"),
        ("  local:", "  two words:", "llm.yaml, line 2: providers.two words", "letters, digits, dashes"),
        ("org/tiny-1.5", "x" * 201, "llm.yaml, line 8: providers.local.models.xxx", "longer than 200 characters"),
        # No YAML at all.
        ("    name: My server", "   name: [", "llm.yaml, line 5", "no YAML"),
        ("name: My server", "name: \t*", "llm.yaml, line 3", "no YAML"),
        ("      bare:", "---\nproviders: {}", "llm.yaml, line 17", "no YAML"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_line_and_field(old: str, new: str, place: str, problem: str) -> None:
    text = GOOD.replace("      bare:\n", "      bare: {}\n")
    assert old in GOOD

    with pytest.raises(CatalogueError) as caught:
        read(text.replace(old if old != "      bare:" else "      bare: {}", new))

    assert str(caught.value).startswith(place)
    assert problem in str(caught.value)


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words\n", "5\n", "providers: [a]\n", "providers: text\n"])
def test_a_file_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(CatalogueError, match=r"llm\.yaml, line 1: .*must be an object"):
        read(text)


def test_a_file_that_folds_into_itself_does_no_harm() -> None:
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nproviders: &p\n  p: *p\n"

    with pytest.raises(CatalogueError):
        read(bomb)
    with pytest.raises(CatalogueError):
        read("[" * 5000)
