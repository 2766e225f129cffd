"""Files for an agent: it gets what is in its folder, page by page, and nothing from anywhere else."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from dialogs.agents.tools.base import ToolError
from dialogs.agents.tools.workspace import (
    MAX_ENTRIES,
    MAX_FILE_BYTES,
    MAX_HITS,
    MAX_RESULT_CHARS,
    Workspace,
    workspace_tools,
)
from dialogs.models import Agent

SECRET = "the neighbours' secret"


@pytest.fixture
def folder(agent: Agent, settings: Any, tmp_path: Path) -> Path:
    """Helper's folder, with the tools switched on, beside a file that is none of Helper's business."""
    settings.DOMINDS_WORKSPACES_DIR = tmp_path / "workspaces"
    agent.workspace_enabled = True
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = tmp_path / "workspaces" / "helper"
    folder.mkdir(parents=True)
    return folder


def use(agent: Agent, name: str, **arguments: Any) -> str:
    """Call one tool as the driver would; a file that makes it wait fails the test."""
    tool = next(tool for tool in workspace_tools(agent) if tool.name == name)
    return asyncio.run(asyncio.wait_for(tool.perform(arguments, ""), timeout=10))


def test_an_agent_has_no_files_unless_an_admin_says_so_and_then_three_tools(agent: Agent, folder: Path) -> None:
    tools = workspace_tools(agent)

    assert [tool.name for tool in tools] == ["list_files", "read_file", "search_files"]
    assert all(tool.idempotent and tool.parallel for tool in tools), "all may run again, and beside each other"
    assert tools[1].parameters["required"] == ["path"]
    agent.workspace_enabled = False
    assert workspace_tools(agent) == ()


def test_the_folder_is_made_when_it_is_first_used_and_a_listing_has_folders_first_and_sizes(
    agent: Agent, folder: Path
) -> None:
    folder.rmdir()
    assert use(agent, "list_files") == "The folder is empty."

    (folder / "alpha.txt").write_text("x" * 1234)
    (folder / "zeta").mkdir()

    assert use(agent, "list_files").splitlines() == ["zeta/", "alpha.txt  1,234 bytes"]


def test_a_long_listing_says_how_much_is_missing(agent: Agent, folder: Path) -> None:
    for number in range(MAX_ENTRIES + 3):
        (folder / f"{number:05}").touch()

    lines = use(agent, "list_files").splitlines()

    assert len(lines) == MAX_ENTRIES + 1
    assert lines[-1] == "… and 3 more, not listed."


def test_a_name_with_a_line_end_stays_one_line(agent: Agent, folder: Path) -> None:
    (folder / "two\nlines").touch()
    Path(os.fsdecode(os.fsencode(folder) + b"/not-utf8-\xff")).touch()

    lines = use(agent, "list_files").splitlines()

    assert lines == ["not-utf8-\ufffd  0 bytes", "two\ufffdlines  0 bytes"]


def test_a_file_is_read_page_by_page(agent: Agent, folder: Path) -> None:
    (folder / "numbers.txt").write_text("".join(f"line {number}\n" for number in range(1, 501)))

    first, last = (
        use(agent, "read_file", path="numbers.txt"),
        use(agent, "read_file", path="numbers.txt", start_line=401),
    )

    assert first.splitlines()[0] == "numbers.txt: lines 1 to 200 of 500. Read on with start_line=201."
    assert first.splitlines()[2:] == [f"line {number}" for number in range(1, 201)]
    assert last.splitlines()[0] == "numbers.txt: lines 401 to 500 of 500."


def test_a_page_ends_where_the_result_would_grow_too_long_and_one_endless_line_is_cut(
    agent: Agent, folder: Path
) -> None:
    (folder / "wide.txt").write_text(f"{'x' * 30_000}\n" * 10)
    (folder / "one.json").write_text("x" * 250_000)

    wide, endless = (use(agent, "read_file", path=name) for name in ("wide.txt", "one.json"))

    assert wide.startswith("wide.txt: lines 1 to 3 of 10. Read on with start_line=4.")
    assert len(wide) < MAX_RESULT_CHARS + 200
    assert endless.startswith("one.json: lines 1 to 1 of 1.")
    assert endless.endswith("x … (the line has 250,000 characters)")


def test_chinese_and_windows_line_ends_are_text(agent: Agent, folder: Path) -> None:
    (folder / "笔记.txt").write_bytes("\ufeff第一行\r\n第二行\r\n".encode())

    said = use(agent, "read_file", path="笔记.txt")

    assert said.splitlines() == ["笔记.txt: lines 1 to 2 of 2.", "", "第一行", "第二行"]


@pytest.mark.parametrize(
    ("path", "arguments", "complaint"),
    [
        ("image.png", {}, "image.png is not a text file in UTF-8"),
        ("latin1.txt", {}, "latin1.txt is not a text file in UTF-8"),
        ("huge.log", {}, "huge.log is too large: 5,000,001 bytes, and 5,000,000 is the most."),
        ("short.txt", {"start_line": 4}, "short.txt has only 3 lines."),
        ("sub", {}, "sub is a folder: use list_files."),
        ("missing.txt", {}, "There is no missing.txt in your folder."),
        ("n" * 300, {}, "There is no n"),
    ],
)
def test_what_cannot_be_read_is_said_in_words(
    path: str, arguments: dict[str, int], complaint: str, agent: Agent, folder: Path
) -> None:
    (folder / "sub").mkdir()
    (folder / "short.txt").write_text("1\n2\n3\n")
    (folder / "image.png").write_bytes(b"\x89PNG\0\0")
    (folder / "latin1.txt").write_bytes("é".encode("latin-1"))
    with (folder / "huge.log").open("wb") as huge:
        huge.truncate(MAX_FILE_BYTES + 1)

    with pytest.raises(ToolError, match=complaint):
        use(agent, "read_file", path=path, **arguments)


def test_a_search_names_file_and_line(agent: Agent, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "b.txt").write_text("nothing\nthe DEADLINE is Friday\n")
    (folder / "a.txt").write_text("Deadline: 1.5 [sic]\n")
    (folder / "image.png").write_bytes(b"\0deadline")

    assert use(agent, "search_files", text="deadline").splitlines() == [
        "a.txt:1: Deadline: 1.5 [sic]",
        "sub/b.txt:2: the DEADLINE is Friday",
    ]
    assert use(agent, "search_files", text="deadline", path="sub") == "sub/b.txt:2: the DEADLINE is Friday"
    assert use(agent, "search_files", text="1.5 [", path="a.txt") == "a.txt:1: Deadline: 1.5 [sic]"
    assert use(agent, "search_files", text="1x5") == "Nothing found."


def test_a_search_with_too_many_hits_says_what_to_do(agent: Agent, folder: Path) -> None:
    (folder / "log.txt").write_text("again\n" * (MAX_HITS + 1))

    lines = use(agent, "search_files", text="again").splitlines()

    assert len(lines) == MAX_HITS + 1
    assert "only the first 200 are shown" in lines[-1]


def test_a_hit_in_a_long_line_shows_its_surroundings(agent: Agent, folder: Path) -> None:
    (folder / "one.json").write_text("x" * 5_000 + "needle" + "y" * 5_000)

    said = use(agent, "search_files", text="NEEDLE")

    assert "needle" in said
    assert len(said) < 400


def test_a_search_that_takes_too_long_ends_and_says_so(
    agent: Agent, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialogs.agents.tools.workspace.SEARCH_SECONDS", 0)
    (folder / "a.txt").write_text("needle")

    said = use(agent, "search_files", text="needle")

    assert said.splitlines()[-1] == "… the search took too long and was ended. Search in one folder."


def lay_traps(folder: Path) -> None:
    """Everything in the folder that leads out of it, nowhere, or to something that is no file."""
    outside = folder.parent.parent
    (folder / "to-file").symlink_to(outside / "secret.txt")
    (folder / "to-folder").symlink_to(outside)
    (folder / "to-sibling").symlink_to("../../secret.txt")
    (folder / "dangling").symlink_to(outside / "not-there")
    (folder / "ring").symlink_to("ring")
    (folder / "sub").mkdir()
    # A neighbour whose name begins as ours does.
    (folder.parent / "helper-two").mkdir()
    (folder.parent / "helper-two" / "secret.txt").write_text(SECRET)
    (folder / "to-neighbour").symlink_to("../helper-two")


@pytest.mark.parametrize("tool", ["list_files", "read_file", "search_files"])
@pytest.mark.parametrize(
    "path",
    [
        "../../secret.txt",
        "..",
        "sub/../../../secret.txt",
        "sub/..",  # stays inside, and is refused all the same: nobody needs it
        "/etc/passwd",
        "//etc/passwd",
        "to-file",
        "to-folder",
        "to-folder/secret.txt",
        "to-sibling",
        "to-neighbour/secret.txt",
        "dangling",
        "ring",
        "a\0b",
        "\udcff",
        "~/secret.txt",
    ],
)
def test_no_path_leads_out_of_the_folder(path: str, tool: str, agent: Agent, folder: Path) -> None:
    lay_traps(folder)
    text = {"text": "secret"} if tool == "search_files" else {}

    with pytest.raises(ToolError, match=r"is not a path inside your folder|There is no"):
        use(agent, tool, path=path, **text)


def test_walking_the_folder_meets_nothing_from_outside(agent: Agent, folder: Path) -> None:
    lay_traps(folder)

    listing, hits = use(agent, "list_files"), use(agent, "search_files", text="secret")

    assert "to-file  (cannot be read)" in listing
    assert "to-folder  (cannot be read)" in listing
    assert hits == "Nothing found."


def test_a_link_that_stays_inside_is_what_it_leads_to(agent: Agent, folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "notes.txt").write_text("hello")
    (folder / "short").symlink_to("real/notes.txt")

    assert use(agent, "read_file", path="short").endswith("hello")
    assert use(agent, "search_files", text="hello") == "real/notes.txt:1: hello"


def test_a_pipe_is_no_file_and_makes_nobody_wait(agent: Agent, folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    with pytest.raises(ToolError, match="pipe is not a regular file"):
        use(agent, "read_file", path="pipe")
    assert use(agent, "search_files", text="x") == "Nothing found."
    assert use(agent, "list_files") == "pipe  (cannot be read)"


def test_a_link_put_there_after_the_look_is_not_followed(
    agent: Agent, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "notes.txt").write_text("mine")
    look = Workspace.find

    def find_then_swap(space: Workspace, path: str) -> Path:
        found = look(space, path)
        found.unlink()
        found.symlink_to(folder.parent.parent / "secret.txt")
        return found

    monkeypatch.setattr(Workspace, "find", find_then_swap)

    with pytest.raises(ToolError, match="cannot be read"):
        use(agent, "read_file", path="notes.txt")


def test_an_admin_may_lead_the_folder_itself_elsewhere(agent: Agent, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.txt").write_text("hello")
    folder.rmdir()
    folder.symlink_to(tmp_path / "documents")

    assert use(agent, "read_file", path="a.txt").endswith("hello")
