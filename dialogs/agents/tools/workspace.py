"""Files for an agent: it lists, reads and searches one folder of its own, and nothing outside it.

A path is resolved first, links and all, and taken only when it ends inside the folder. The file is then opened without
following a last link and without waiting, and must be a regular file of text. Results may be long: withholding a long
result is the driver's decision, not the tool's.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath

from django.conf import settings

from dialogs.agents.tools.base import Arguments, OutsideTool, ToolError, schema
from dialogs.common.threads import in_tools_thread
from dialogs.models import Agent

MAX_ENTRIES = 1_000
MAX_HITS = 200
MAX_LINES = 5_000
MAX_RESULT_CHARS = 100_000
MAX_SHOWN_LINE = 300
# A search that takes longer is cut short: a thread cannot be cancelled, it has to stop by itself.
SEARCH_SECONDS = 20.0

PATH = {"type": "string", "description": "Relative to your folder, such as `notes/plan.md`."}
FOLDER = PATH | {"optional": True, "description": "Relative to your folder. Left out: the whole folder."}
MAX_FILE_BYTES = 5_000_000
# A pipe would wait for its writer, and a link put there since the look would lead elsewhere.
CAREFUL = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def workspace_tools(agent: Agent) -> tuple[OutsideTool, ...]:
    """The three tools on this agent's folder; none unless an admin has switched them on."""
    if not agent.workspace_enabled:
        return ()
    number = {"type": "integer", "minimum": 1, "optional": True}
    return (
        _tool(
            agent,
            list_files,
            description="List the files and folders in a folder of yours, with their sizes.",
            parameters=schema(path=FOLDER),
        ),
        _tool(
            agent,
            read_file,
            description="Read a text file of yours, 200 lines at a time unless you say otherwise.",
            parameters=schema(path=PATH, start_line=number, lines=number | {"maximum": MAX_LINES}),
        ),
        _tool(
            agent,
            search_files,
            description="Find the lines that contain a text, upper and lower case alike, in all files of yours.",
            parameters=schema(text={"type": "string", "minLength": 1, "description": "Plain text."}, path=FOLDER),
        ),
    )


def _tool(
    agent: Agent, function: Callable[..., str], *, description: str, parameters: dict[str, object]
) -> OutsideTool:
    async def perform(arguments: Arguments, _key: str) -> str:
        return await in_tools_thread(lambda: _guarded(lambda: function(Workspace.of(agent), **arguments)))

    return OutsideTool(
        name=function.__name__,
        description=description,
        parameters=parameters,
        perform=perform,
        idempotent=True,
        parallel=True,
    )


def _guarded(work: Callable[[], str]) -> str:
    """Turn an OSError into a ToolError, in the system's words but without its paths."""
    try:
        return work()
    except OSError as error:
        raise ToolError(f"The files cannot be read: {in_words(error)}.") from error


def list_files(workspace: Workspace, path: str = ".") -> str:
    folder = workspace.find(path)
    if not folder.is_dir():
        raise ToolError(f"{shown(path)} is a file, not a folder: use read_file.")
    entries = sorted((_Entry(workspace, entry) for entry in folder.iterdir()), key=_Entry.order)
    if not entries:
        return "The folder is empty."
    lines = [entry.line for entry in entries[:MAX_ENTRIES]]
    if len(entries) > MAX_ENTRIES:
        lines.append(f"… and {len(entries) - MAX_ENTRIES:,} more, not listed.")
    return "\n".join(lines)


class _Entry:
    """One line of a listing. A link is what it leads to, where that may be read."""

    def __init__(self, workspace: Workspace, path: Path) -> None:
        self.name = path.name
        self.line = f"{shown(path.name)}  (cannot be read)"
        self.is_folder = False
        if not workspace.holds(path):
            return
        about = path.stat()
        self.is_folder = stat.S_ISDIR(about.st_mode)
        if self.is_folder:
            self.line = f"{shown(path.name)}/"
        elif stat.S_ISREG(about.st_mode):
            self.line = f"{shown(path.name)}  {about.st_size:,} bytes"

    def order(self) -> tuple[bool, str, str]:
        return not self.is_folder, self.name.casefold(), self.name


def read_file(workspace: Workspace, path: str, start_line: int = 1, lines: int = 200) -> str:
    every = lines_of(workspace.find(path), shown(path))
    first = max(start_line, 1)
    if first > max(len(every), 1):
        raise ToolError(f"{shown(path)} has only {len(every):,} lines.")
    wanted = list(_fitting(every[first - 1 : first - 1 + max(lines, 1)]))
    last = first - 1 + len(wanted)
    head = f"{shown(path)}: lines {first:,} to {last:,} of {len(every):,}." if every else f"{shown(path)} is empty."
    if last < len(every):
        head += f" Read on with start_line={last + 1}."
    return "\n".join([head, "", *wanted])


def _fitting(lines: list[str]) -> Iterator[str]:
    """The first lines that fit into one result. A first line that alone is too long is cut."""
    room = MAX_RESULT_CHARS
    for number, line in enumerate(lines):
        if len(line) > room and number:
            return
        yield line if len(line) <= room else f"{line[:room]} … (the line has {len(line):,} characters)"
        room -= len(line) + 1


def search_files(workspace: Workspace, text: str, path: str = ".") -> str:
    if not text:
        raise ToolError("Say which text to search for.")
    start = workspace.find(path)
    deadline = time.monotonic() + SEARCH_SECONDS
    hits = list(islice(_hits(workspace, start, text.casefold(), deadline), MAX_HITS + 1))
    lines = hits[:MAX_HITS] or ["Nothing found."]
    if len(hits) > MAX_HITS:
        lines.append(f"… and more: only the first {MAX_HITS} are shown. Search for a longer text, or in one folder.")
    elif time.monotonic() >= deadline:
        lines.append("… the search took too long and was ended. Search in one folder.")
    return "\n".join(lines)


def _hits(workspace: Workspace, start: Path, text: str, deadline: float) -> Iterator[str]:
    """`path:line: text` for every line that holds the text. Files that are no text are passed over."""
    for file in workspace.files_below(start):
        if time.monotonic() >= deadline:
            return
        name = shown(workspace.name_of(file))
        try:
            lines = lines_of(file, name)
        except (ToolError, OSError):
            continue
        for number, line in enumerate(lines, start=1):
            if text in line.casefold():
                yield f"{name}:{number}: {_around(line, text)}"


def _around(line: str, text: str) -> str:
    """The part of a long line around the text that was found."""
    at = max(line.casefold().find(text) - MAX_SHOWN_LINE // 3, 0)
    part = line[at : at + MAX_SHOWN_LINE].strip()
    return f"{'…' if at else ''}{part}{'…' if at + MAX_SHOWN_LINE < len(line) else ''}"


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
        except (OSError, RuntimeError, ValueError):  # missing, a loop of links, or an invalid name
            return False

    def name_of(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def files_below(self, start: Path) -> Iterator[Path]:
        """Every regular file. Links are left out: a file that a link leads to inside the folder is found where it
        stands."""
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
    """The system's words for the error, without the path, which must not leave this machine."""
    return error.strerror or type(error).__name__


def shown(name: str) -> str:
    """A file name for one line of a result: without line ends and characters that a database refuses."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in name)
