"""Which paths an agent's files may have, and reading one of them: the fence around a workspace.

A path is resolved first, links and all, and taken only when it ends inside the folder. The file is then
opened without following a last link and without waiting, and must be a regular file of text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from django.conf import settings

from dialogs.agents.tools.base import ToolError
from dialogs.models import Agent

MAX_FILE_BYTES = 5_000_000
# A pipe would wait for its writer, and a link put there since the look would lead elsewhere.
CAREFUL = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def folder_of(agent: Agent) -> Path:
    """Where this agent's files are. An admin puts them there."""
    return Path(settings.DOMINDS_WORKSPACES_DIR) / agent.slug


@dataclass(frozen=True)
class Workspace:
    """A folder, resolved. `find` is the only way from an agent's words to a path."""

    root: Path

    @classmethod
    def of(cls, agent: Agent) -> Workspace:
        return cls(folder_of(agent).resolve())

    def find(self, path: str) -> Path:
        """The existing file or folder that the agent means. Raises ToolError for anything outside."""
        self.root.mkdir(parents=True, exist_ok=True)
        if "\0" in path or _leads_out(PurePath(path)):
            raise ToolError(f"{shown(path)} is not a path inside your folder. Write one such as notes/plan.md.")
        found = self.root / path
        if not self.holds(found):
            raise ToolError(f"There is no {shown(path)} in your folder.")
        return found.resolve()

    def holds(self, path: Path) -> bool:
        """Whether this exists and, all links followed, lies inside the folder."""
        try:
            return path.resolve(strict=True).is_relative_to(self.root)
        except (OSError, RuntimeError, ValueError):  # missing, a ring of links, no name at all
            return False

    def name_of(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def files_below(self, start: Path) -> Iterator[Path]:
        """Every regular file, links left out: what they lead to inside the folder is found where it stands."""
        if start.is_file():
            yield start
        for folder, folders, names in os.walk(start):
            folders.sort()
            yield from (Path(folder, name) for name in sorted(names) if stat.S_ISREG(_mode(Path(folder, name))))


def _leads_out(path: PurePath) -> bool:
    return bool(path.anchor) or ".." in path.parts


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:  # gone meanwhile
        return 0


def lines_of(path: Path, name: str) -> list[str]:
    """A text file's lines, without their ends. `name` is what the agent calls it."""
    data = _read(path, name)
    try:
        if b"\0" in data:
            raise ValueError
        text = data.decode("utf-8-sig")
    except ValueError as error:
        raise ToolError(f"{name} is not a text file in UTF-8 and cannot be read.") from error
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _read(path: Path, name: str) -> bytes:
    if path.is_dir():
        raise ToolError(f"{name} is a folder: use list_files.")
    try:
        with os.fdopen(os.open(path, CAREFUL), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise ToolError(f"{name} is not a regular file and cannot be read.")
            if about.st_size > MAX_FILE_BYTES:
                raise ToolError(f"{name} is too large: {about.st_size:,} bytes, and {MAX_FILE_BYTES:,} is the most.")
            return file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise ToolError(f"{name} cannot be read: {in_words(error)}.") from error


def in_words(error: OSError) -> str:
    """What the disk said, without the path: that is nobody's business outside this machine."""
    return error.strerror or type(error).__name__


def shown(name: str) -> str:
    """A name as it may stand in a line: no line ends, and nothing that a database refuses."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in name)
