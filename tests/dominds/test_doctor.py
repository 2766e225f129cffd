"""The doctor against what really is there: a closed port, a database without tables, a provider that answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from dialogs.models import LLM, Provider
from dominds.management.commands import doctor
from dominds.management.commands.doctor import CheckResult, State
from dominds.supervisor import lock, probes
from tests.stack import manage, settings_of
from tests.standins.ollama import OllamaStandin
from tests.standins.serving import serving


def found(check: Callable[[], Iterator[CheckResult]]) -> dict[str, CheckResult]:
    return {finding.name: finding for finding in check()}


def test_this_installation_is_whole() -> None:
    findings = found(doctor.install)

    assert findings["install"].state == State.OK
    assert "packages" not in findings


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = tmp_path / "base.txt"
    requirements.write_text("# ours\ndjango==1\nno-such-package==2 ; python_version > '3'\n")
    monkeypatch.setattr(doctor, "REQUIREMENTS", requirements)

    assert found(doctor.install)["packages"].text == "not installed: no-such-package"


def test_a_missing_valkey_is_wrong_unless_redis_is_given(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DOMINDS_VALKEY_PROGRAM = "/no/such/program"

    with_redis = found(doctor.install)
    monkeypatch.delenv("REDIS_URL")
    without = found(doctor.install)

    assert "valkey" not in with_redis
    assert without["valkey"].state == State.WRONG


def test_a_full_disk_is_wrong(settings: Any) -> None:
    settings.DOMINDS_MIN_FREE_MB = 1e12

    assert found(doctor.data_folder)["data"].state == State.WRONG


def test_a_data_folder_that_others_can_read_is_wrong(settings: Any, tmp_path: Path) -> None:
    settings.DOMINDS_DATA_DIR = tmp_path
    tmp_path.chmod(0o755)
    before = found(doctor.data_folder)

    tmp_path.chmod(0o700)

    assert before["privacy"].fix == f"chmod -R go= {tmp_path}"
    assert "privacy" not in found(doctor.data_folder)


@pytest.mark.django_db
def test_a_migrated_database_is_well() -> None:
    findings = found(doctor.database)

    assert findings["database"].state == findings["migrations"].state == State.OK


@pytest.mark.django_db
def test_sqlite_with_a_redis_elsewhere_is_worth_a_note(settings: Any) -> None:
    settings.REDIS_URL = "redis://redis.example.com/0"

    note = found(doctor.database).get("machines")

    assert note is None if settings.DATABASES["default"]["ENGINE"].endswith("postgresql") else note


def test_redis_answers_without_its_password_being_shown(settings: Any) -> None:
    answering = found(doctor.redis_server)["redis"]
    settings.REDIS_URL = f"redis://:pass-word@127.0.0.1:{probes.free_port()}/0"
    silent = found(doctor.redis_server)["redis"]

    assert answering.state == State.OK
    assert silent.state == State.WRONG
    assert "pass-word" not in silent.text


def test_no_worker_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PING_SECONDS", (0.05, 0.05))

    assert found(doctor.workers)["workers"].state == State.WRONG


def test_a_port_that_is_free_or_taken(settings: Any) -> None:
    settings.DOMINDS_PORT = probes.free_port()
    free = found(doctor.web)["web"]
    settings.DOMINDS_PORT = int(settings.REDIS_URL.split(":")[-1].split("/")[0])
    taken = found(doctor.web)["web"]

    assert (free.state, taken.state) == (State.NOTE, State.WRONG)


def test_the_port_is_the_one_that_up_was_given(settings: Any, tmp_path: Path) -> None:
    settings.DOMINDS_DATA_DIR, given = tmp_path, probes.free_port()

    with lock.sole_user(tmp_path, purpose="starting it"), lock.listening(tmp_path, "127.0.0.1", given):
        finding = found(doctor.web)["web"]

    assert str(given) in finding.text
    assert lock.listens_at(tmp_path) is None


def test_the_note_of_a_killed_up_is_not_believed(tmp_path: Path) -> None:
    """Also where one without a web server runs now."""
    (tmp_path / "run").mkdir()

    with lock.listening(tmp_path, "127.0.0.1", 8123):
        assert lock.listens_at(tmp_path) is None
    with lock.listening(tmp_path, "127.0.0.1", 8123), lock.sole_user(tmp_path, purpose="starting workers only"):
        assert lock.listens_at(tmp_path) is None


@pytest.mark.django_db(transaction=True)
def test_a_provider_that_refuses_is_wrong(provider: Provider) -> None:
    provider.kind, provider.base_url = "llamacpp", f"http://127.0.0.1:{probes.free_port()}"
    provider.save()

    finding = found(doctor.providers)["provider scripted"]

    assert finding.state == State.WRONG
    assert finding.fix


@pytest.mark.django_db
def test_a_missing_key_is_a_note_with_a_fix(provider: Provider) -> None:
    provider.api_key_env = "NO_SUCH_KEY"
    provider.save()

    (note, nobody) = doctor.providers()

    assert (note.state, note.text) == (State.NOTE, "without a key: scripted")
    assert nobody.state == State.WRONG


@pytest.mark.parametrize(
    ("numbers", "state", "words"),
    [
        ({"context_length": None}, State.NOTE, "is not known"),
        ({"optimal_max_tokens": 900}, State.WRONG, "can never reach caution"),
        ({"critical_max_tokens": 1001}, State.WRONG, "can never reach critical"),
        ({}, State.OK, "1 LLMs"),
    ],
)
@pytest.mark.django_db
def test_odd_limits_are_told(llm: LLM, numbers: dict[str, int | None], state: State, words: str) -> None:
    LLM.objects.filter(pk=llm.pk).update(**numbers)

    finding, overflow = doctor.limits()

    assert finding.state == state
    assert words in finding.text
    assert overflow.name == f"overflow {llm.slug}"


@pytest.mark.parametrize(
    ("numbers", "state", "words"),
    [
        (
            {"context_length": 8192, "context_length_source": "server"},
            State.OK,
            "window 8,192 from the server, 819 kept for the answer; compaction from ≈5,900 tokens on",
        ),
        ({"context_length": None}, State.NOTE, "it is learned from the first refusal"),
        ({"context_length": 8192, "compaction": "off"}, State.NOTE, "compaction is off for this LLM"),
    ],
)
@pytest.mark.django_db
def test_it_says_how_each_llm_is_kept_from_overflowing(
    llm: LLM, numbers: dict[str, Any], state: State, words: str
) -> None:
    LLM.objects.filter(pk=llm.pk).update(**{"compaction": "automatic", **numbers})

    finding = found(doctor.limits)[f"overflow {llm.slug}"]

    assert finding.state == state
    assert words in finding.text


@pytest.mark.django_db(transaction=True)
def test_an_ollama_behind_openais_api_is_a_note_with_the_command_that_connects_it(provider: Provider) -> None:
    with serving(OllamaStandin().app()) as url:
        Provider.objects.update(kind="openai", base_url=f"{url}/v1")

        finding = found(doctor.providers)["provider scripted"]

    assert finding.state == State.NOTE
    assert "connect it as Ollama" in finding.text
    assert finding.fix == f"manage.py provider add ollama {url} --name ollama"


@pytest.mark.django_db
def test_json_holds_the_same_findings(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PING_SECONDS", (0.05, 0.05))

    with pytest.raises(SystemExit) as stopped:
        call_command("doctor", "--json")

    findings = json.loads(capsys.readouterr().out)
    assert stopped.value.code == 1
    assert {"name", "state", "text", "fix"} == set(findings[0])
    assert [finding["state"] for finding in findings if finding["name"] == "workers"] == ["wrong"]


def test_a_new_installation_is_told_what_to_run(tmp_path: Path) -> None:
    done = manage("doctor", environment=settings_of(tmp_path), check=False)

    assert done.returncode == 1
    assert "wrong  migrations" in done.stdout
    assert "       fix: run `manage.py migrate`" in done.stdout
    assert "Traceback" not in done.stderr
