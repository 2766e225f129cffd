"""The log of rewards as a file: lines that come, lines that go, and who can read them."""

from __future__ import annotations

import json
import multiprocessing
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from health import reward_log

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
OURS, THEIRS = UUID(int=1), UUID(int=2)


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DOMINDS_DATA_DIR = tmp_path
    return tmp_path


def a_row(*, dialog: UUID = OURS, llm: str = "local/tiny", at: datetime = NOON, run: int = 1) -> dict[str, Any]:
    before = {"dialog": reward_log.hash_of(dialog), "llm": llm, "run": run}
    return {"stateBefore": before, "action": {"chain": []}, "reward": 1.3, "stateAfter": {"at": at.isoformat()}}


def test_each_line_is_one_object_with_the_four_keys(folder: Path) -> None:
    reward_log.append(a_row())
    reward_log.append(a_row(run=2))

    lines = (folder / "rewards.jsonl").read_text().splitlines()

    assert [set(json.loads(line)) for line in lines] == [{"stateBefore", "action", "reward", "stateAfter"}] * 2


def test_only_the_owner_of_the_data_folder_can_read_it(folder: Path) -> None:
    reward_log.append(a_row())
    reward_log.forget(OURS)
    reward_log.append(a_row())

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}

    assert set(modes.values()) == {0o600}, modes


def test_erasing_a_dialog_erases_its_lines_and_no_others() -> None:
    for dialog in (OURS, THEIRS, OURS):
        reward_log.append(a_row(dialog=dialog))

    assert reward_log.forget(OURS) == 2
    assert [row["stateBefore"]["dialog"] for row in reward_log.rows()] == [reward_log.hash_of(THEIRS)]


def test_what_was_erased_meanwhile_does_not_come_back() -> None:
    reward_log.append(a_row(), unless=lambda: True)

    assert list(reward_log.rows()) == []


def test_lines_go_when_their_time_is_over() -> None:
    for days in (31, 30, 1):
        reward_log.append(a_row(at=NOON - timedelta(days=days), run=days))

    assert reward_log.prune(before=NOON - timedelta(days=30)) == 1
    assert [row["stateBefore"]["run"] for row in reward_log.rows()] == [30, 1]


def test_a_line_that_was_cut_short_is_skipped_and_goes_with_the_next_pruning(folder: Path) -> None:
    reward_log.append(a_row())
    with (folder / "rewards.jsonl").open("a") as file:
        file.write('{"stateBefore": {"dia\n')

    assert len(list(reward_log.rows())) == 1
    assert reward_log.prune(before=NOON - timedelta(days=30)) == 1


def test_lines_are_found_by_time_and_by_llm() -> None:
    reward_log.append(a_row(at=NOON - timedelta(days=1), run=1))
    reward_log.append(a_row(run=2))
    reward_log.append(a_row(llm="cloud/large", run=3))

    found = reward_log.rows(since=NOON, llm="local/tiny")

    assert [row["stateBefore"]["run"] for row in found] == [2]


def append_many(folder: Path, first: int) -> None:
    for number in range(first, first + 50):
        reward_log.append(a_row(run=number))
        if number % 10 == 0:
            reward_log.forget(THEIRS)


def test_no_line_is_lost_when_processes_write_and_erase_at_once(folder: Path) -> None:
    reward_log.append(a_row(dialog=THEIRS))
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=append_many, args=(folder, 100 * number)) for number in range(1, 4)]

    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)

    runs = sorted(row["stateBefore"]["run"] for row in reward_log.rows())
    assert runs == [*range(100, 150), *range(200, 250), *range(300, 350)]
