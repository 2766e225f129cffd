"""The log of rewards: JSONL in the data folder, for training by others. Off unless staff switch it on.

Each line has four keys, {stateBefore, action, reward, stateAfter}: numbers, kinds, names and hashes, never a text.
Lines are added and deleted under a lock between all processes; only the folder's owner can read them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac

Row = Mapping[str, Any]
FILE, LOCK = "rewards.jsonl", "rewards.lock"
OWNER_ONLY = 0o600


def hash_of(dialog_id: UUID) -> str:
    """A dialog's hash: always the same, and only with the secret key can it be traced to the dialog."""
    return salted_hmac("health.rewards", str(dialog_id), algorithm="sha256").hexdigest()[:32]


def append(row: Row, *, unless: Callable[[], bool] = lambda: False) -> None:
    """Append one line unless `unless()`, called under the lock, says that its dialog was erased meanwhile."""
    line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
    with _locked():
        if not unless():
            with _opened(_path(), os.O_APPEND) as file:
                file.write(line)


def rows(*, since: datetime | None = None, llm: str = "") -> Iterator[Row]:
    """The rows, oldest first; optionally only of runs that ended since then, and of this LLM."""
    for row in map(_read, _lines()):
        if row and (since is None or _ended(row) >= since) and llm in ("", row["stateBefore"]["llm"]):
            yield row


def forget(dialog_id: UUID) -> int:
    """Erase all lines of a dialog. Returns their number."""
    of_dialog = hash_of(dialog_id)
    return _keep(lambda row: row["stateBefore"]["dialog"] != of_dialog)


def prune(*, before: datetime) -> int:
    """Erase the lines of runs that ended before that. Returns their number."""
    return _keep(lambda row: _ended(row) >= before)


def _keep(wanted: Callable[[Row], bool]) -> int:
    """Rewrite the file with the wanted lines. A line that a full disk cut short is dropped too."""
    with _locked():
        lines = _lines()
        kept = [line for line in lines if (row := _read(line)) and wanted(row)]
        if len(kept) < len(lines):
            draft = _path().with_suffix(".draft")
            with _opened(draft, os.O_TRUNC) as file:
                file.writelines(f"{line}\n" for line in kept)
            draft.replace(_path())
        return len(lines) - len(kept)


def _lines() -> list[str]:
    path = _path()
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _read(line: str) -> Row | None:
    try:
        row = json.loads(line)
        _ended(row)
    except (ValueError, KeyError, TypeError):
        return None
    return row


def _ended(row: Row) -> datetime:
    return datetime.fromisoformat(row["stateAfter"]["at"])


def _path() -> Path:
    return settings.DOMINDS_DATA_DIR / FILE


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Lock a second file, as the log itself is replaced when lines are deleted, and a lock on it would be lost."""
    with _opened(settings.DOMINDS_DATA_DIR / LOCK, os.O_APPEND) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _opened(path: Path, flags: int):  # type: ignore[no-untyped-def]  # a text file
    return os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | flags, OWNER_ONLY), "w", encoding="utf-8")
