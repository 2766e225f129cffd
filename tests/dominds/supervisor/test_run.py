from __future__ import annotations

import pytest

from dominds.supervisor import run


def test_only_a_worker_with_many_threads_lets_them_share_heaps() -> None:
    turns, compaction = map(run.worker, run.WORKERS)

    assert turns.environment["MALLOC_ARENA_MAX"] == "2"
    assert "MALLOC_ARENA_MAX" not in compaction.environment


def test_web_processes_and_workers_give_back_the_memory_of_large_texts() -> None:
    children = [*map(run.worker, run.WORKERS), *run.web(host="127.0.0.1", port=8000, listens=None)]

    given = [child.environment[f"MALLOC_{name}_THRESHOLD_"] for child in children for name in ("MMAP", "TRIM")]
    assert given == ["131072"] * 2 * len(children)


def test_an_address_of_ipv6_has_one_web_process_that_listens_by_itself() -> None:
    (child,) = run.web(host="::1", port=8000, listens=None)

    assert "--bind" in child.command
    assert child.address == "http://[::1]:8000/healthz"


@pytest.mark.parametrize("processes", [1, 3])
def test_all_web_processes_inherit_one_socket_and_the_first_is_asked(
    processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django.conf.settings.DOMINDS_WEB_PROCESSES", processes)

    first, *further = run.web(host="127.0.0.1", port=8000, listens=7)

    assert first.address == "http://127.0.0.1:8000/healthz"
    assert [child.address for child in further] == [""] * (processes - 1)
    assert all(child.files == (7,) and "7" in child.command for child in (first, *further))
