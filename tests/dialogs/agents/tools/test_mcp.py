"""Tools of MCP servers: what an agent is offered, real calls over both transports, and every way to go wrong."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from dialogs.agents.reads import servers_to_ask
from dialogs.agents.tools import mcp_servers
from dialogs.agents.tools.base import OutsideTool, ToolError, TransientError
from dialogs.agents.tools.mcp import LEFT_OUT, mcp_tools, refresh
from dialogs.agents.tools.mcp_servers import ask_all, call_tool, read_tools, record_all
from dialogs.agents.writes import record_problem, record_tools, set_secrets
from dialogs.models import Agent, McpServer
from tests.dialogs.agents.tools.conftest import MakeServer

TIME_SERVER = f"{sys.executable} -m mcp_server_time --local-timezone UTC"


# Who loads the SDK, of a process whose first agent asks its servers.
WHO_LOADS = """
import asyncio, sys, threading
import tests.django_loaded
from dialogs.agents.tools import mcp
from dialogs.models import McpServer

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "mcp":
            print(threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Finder())
asyncio.run(mcp.refresh([McpServer(name="lab")]))
"""


@pytest.fixture(autouse=True)
def short_goodbyes(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the SDK waits for a program to end by itself, and then for a request to end to be heeded."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.5)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.5)


def offered(agent: Agent, ending: str) -> OutsideTool:
    return next(tool for tool in mcp_tools(agent) if tool.name.endswith(ending))


@pytest.mark.django_db
@pytest.mark.parametrize(("beside", "is_told"), [("take_screenshot", True), ("click", False)])
def test_a_tree_of_elements_is_for_when_a_screenshot_does_not_suffice(
    agent: Agent, make_server: MakeServer, beside: str, is_told: bool
) -> None:
    server = make_server()
    record_tools(server=server, tools=[{"name": "elementsJson", "description": "All elements."}, {"name": beside}])

    said = offered(agent, "__elementsJson").description

    assert said.startswith("All elements.")
    assert ("if a screenshot suffices" in said) is is_told
    assert "screenshot suffices" not in offered(agent, f"__{beside}").description


def test_no_other_turn_stands_still_while_the_sdk_is_loaded() -> None:
    """All turns of a worker run on one event loop, and the SDK takes a second."""
    done = subprocess.run([sys.executable, "-c", WHO_LOADS], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def ask_and_record(server: McpServer) -> None:
    record_all([server], asyncio.run(ask_all([server])))


def call(server: McpServer, tool: str, **arguments: Any) -> str:
    return asyncio.run(call_tool(server, tool, arguments))


def pid_in(pid_file: Path) -> int:
    """The process that wrote this file, once it has."""
    for _ in range(600):
        if pid_file.exists() and (text := pid_file.read_text()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError("The program did not start.")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def assert_ends(pid_file: Path) -> None:
    """The program of that file ends within a moment."""
    pid = pid_in(pid_file)
    for _ in range(100):
        if not is_running(pid):
            return
        time.sleep(0.05)
    raise AssertionError(f"The process {pid} was left behind.")


def test_the_reference_time_server_tells_the_time(agent: Agent, make_server: MakeServer) -> None:
    server = make_server(name="time", command=TIME_SERVER)

    ask_and_record(server)
    tool = offered(agent, "__get_current_time")
    said = asyncio.run(tool.perform({"timezone": "Asia/Shanghai"}, ""))

    assert tool.name == "time__get_current_time"
    assert tool.parameters["required"] == ["timezone"]
    assert '"timezone": "Asia/Shanghai"' in said
    assert "+08:00" in said


def test_what_only_reads_may_run_again_and_beside_others(agent: Agent, make_server: MakeServer) -> None:
    ask_and_record(make_server())

    reading, writing = offered(agent, "lab__add"), offered(agent, "lab__environment")

    assert (reading.idempotent, reading.parallel) == (True, True)
    assert (writing.idempotent, writing.parallel) == (False, False)


def test_what_may_be_done_twice_may_run_again_but_not_beside_others_and_who_says_little_is_offered_too(
    agent: Agent, make_server: MakeServer
) -> None:
    annotations = {"readOnlyHint": False, "idempotentHint": True}
    server = make_server(timeout_seconds=7, tools=[{"name": "put", "annotations": annotations}, {"name": "bare"}])

    put, bare = offered(agent, "put"), offered(agent, "bare")

    assert (put.idempotent, put.parallel, put.own_name) == (True, False, "put")
    assert (bare.description, bare.parameters) == ("", {"type": "object", "properties": {}})
    # The driver waits longer than the call itself.
    assert put.timeout_seconds > server.timeout_seconds


def test_an_agent_is_offered_only_what_its_enabled_servers_have(agent: Agent, make_server: MakeServer) -> None:
    make_server(name="on", tools=[{"name": "one"}, {"name": "two"}])
    make_server(name="off", tools=[{"name": "three"}], enabled=False)
    McpServer.objects.create(name="other", transport="stdio", tools=[{"name": "four"}])

    assert [tool.name for tool in mcp_tools(agent)] == ["on__one", "on__two"]


def test_names_are_made_to_fit_and_stay_apart(agent: Agent, make_server: MakeServer) -> None:
    long = "n" * 80
    make_server(tools=[{"name": name} for name in ("查询", "天气", "read.file", f"{long}1", f"{long}2")])

    names = [tool.name for tool in mcp_tools(agent)]

    assert names[:3] == ["lab____", "lab_____2", "lab__read_file"]
    assert [len(name) for name in names[3:]] == [64, 64]
    assert len(set(names)) == 5


def test_secrets_arrive_as_environment_and_nothing_of_ours_does(make_server: MakeServer) -> None:
    server = make_server()
    set_secrets(server=server, secrets={"TOKEN": "sésame"})

    assert call(server, "environment", name="TOKEN") == "sésame"
    assert call(server, "environment", name="DOMINDS_SECRET_KEY") == "not set"


def test_an_address_is_asked_and_called_like_a_program_and_secrets_arrive_as_headers(
    agent: Agent, make_server: MakeServer, web_address: str
) -> None:
    server = make_server(transport="http", url=web_address)
    set_secrets(server=server, secrets={"X-Token": "sesame"})

    ask_and_record(server)

    assert asyncio.run(offered(agent, "lab__add").perform({"first": 2, "second": 3}, "")) == "5"
    assert call(server, "header", name="x-token") == "sesame"


def test_a_call_leaves_no_process_behind(make_server: MakeServer, pid_file: Path) -> None:
    assert call(make_server("sdk"), "add", first=2, second=3) == "5"

    assert_ends(pid_file)


def test_a_boundless_answer_is_cut_and_what_is_no_text_is_named(make_server: MakeServer) -> None:
    server = make_server()

    said = call(server, "long_text")

    assert said.endswith("\n… (cut: 300,000 characters in all)")
    assert len(said) < 201_000
    assert call(server, "picture") == "Here it is:\n[image, image/png]"


def test_a_line_that_never_ends_is_given_up_at_once_and_not_held(make_server: MakeServer, pid_file: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(ToolError, match=r"lab cannot be used: More than 8,388,608 bytes came in one line\."):
        call(make_server("endless"), "add", first=2, second=3)

    assert_ends(pid_file)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_all_that_a_program_says_in_a_call_is_bounded(
    make_server: MakeServer, pid_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_servers, "LONGEST_BODY_BYTES", 100_000)

    with pytest.raises(ToolError, match=r"The answer is larger than 100,000 bytes\."):
        call(make_server(), "long_text")

    assert_ends(pid_file)


@pytest.mark.parametrize(
    ("tool", "fields", "words"),
    [
        ("fail", {}, "the printer is on fire"),
        ("nothing", {}, "Unknown tool: nothing"),
        ("add", {"command": "no-such-program"}, "."),
        ("add", {"command": "'unclosed"}, "."),
    ],
)
def test_a_tool_that_fails_says_why_and_what_would_fail_again_is_no_passing_trouble(
    make_server: MakeServer, tool: str, fields: dict[str, str], words: str
) -> None:
    with pytest.raises(ToolError, match=words) as failure:
        call(make_server(**fields), tool)

    assert not isinstance(failure.value, TransientError)


@pytest.mark.parametrize(
    ("how", "tool", "seconds", "words", "unsent"),
    [
        ("stdio", "die", 30, r"lab ended before it had answered\. Its last words: out of paper", False),
        ("stdio", "hang", 4, "lab did not answer within 4 seconds", False),
        ("deaf", "add", 2, "did not answer within 2 seconds", True),
        # Its last words are told without secrets.
        ("complain", "add", 30, r"ended before .* Its last words: The token ••• is not valid", True),
    ],
)
def test_a_program_that_dies_hangs_or_hears_nothing_is_ended_and_it_is_known_whether_a_call_was_asked_for(
    make_server: MakeServer, pid_file: Path, how: str, tool: str, seconds: int, words: str, unsent: bool
) -> None:
    server = make_server(how, timeout_seconds=seconds)
    set_secrets(server=server, secrets={"TOKEN": "s3cr3t"})

    with pytest.raises(TransientError, match=words) as failure:
        call(server, tool)

    assert failure.value.unsent is unsent
    if how != "complain":
        assert_ends(pid_file)
    if tool == "die":
        assert call(server, "add", first=2, second=3) == "5", "that call only has failed"


def test_a_program_that_prints_garbage_is_given_up_quietly(
    make_server: MakeServer, pid_file: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ToolError, match=r"did not answer within 4 seconds\..* not MCP\. Its last words: n") as failure:
        call(make_server("garbage", timeout_seconds=4), "add")

    assert_ends(pid_file)
    assert len(str(failure.value)) < 600
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []
    assert "noise" not in capfd.readouterr().err


def test_a_program_that_greets_before_it_serves_is_used(make_server: MakeServer) -> None:
    assert call(make_server("chatty"), "add", first=2, second=3) == "5"


def test_an_address_where_nobody_answers_may_be_tried_again_and_a_nonsensical_one_not(make_server: MakeServer) -> None:
    with pytest.raises(TransientError) as failure:
        call(make_server(name="a", transport="http", url="http://127.0.0.1:9/mcp"), "add")
    assert failure.value.unsent

    with pytest.raises(ToolError) as nonsense:
        call(make_server(name="b", transport="http", url="nonsense"), "add")
    assert not isinstance(nonsense.value, TransientError)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"command": "no-such-program --now"}, r"cannot be started: No such file or directory \(no-such-program\)"),
        ({"command": "'unclosed"}, "cannot be used: No closing quotation"),
        ({"command": ""}, "cannot be used"),
        ({"transport": "http", "url": "http://127.0.0.1:9/mcp"}, "cannot be used: All connection attempts failed"),
        ({"transport": "http", "url": "nonsense"}, "cannot be used"),
        ({"secrets_encrypted": "unreadable"}, "The stored key cannot be read any more"),
    ],
)
def test_a_server_that_is_not_there_is_told_in_words(
    fields: dict[str, str], complaint: str, make_server: MakeServer
) -> None:
    with pytest.raises(ToolError, match=complaint):
        call(make_server(**fields), "add")


def test_an_address_that_is_no_mcp_server_is_told_in_words(make_server: MakeServer, web_address: str) -> None:
    server = make_server(transport="http", url=web_address.replace("/mcp", "/elsewhere"))

    with pytest.raises(ToolError, match="The MCP server lab "):
        call(server, "add")


@pytest.mark.parametrize("times", [1, 3])
def test_cancelling_waits_until_the_program_has_ended(times: int, make_server: MakeServer, pid_file: Path) -> None:
    server = make_server("deaf")

    async def cancel_in_mid_call() -> None:
        task = asyncio.create_task(call_tool(server, "add", {}))
        await asyncio.to_thread(pid_in, pid_file)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.1)
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert not is_running(pid_in(pid_file))

    asyncio.run(cancel_in_mid_call())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the leash looks every half second")
def test_a_killed_worker_takes_its_servers_along(make_server: MakeServer, pid_file: Path) -> None:
    command = make_server("deaf").command
    worker = subprocess.Popen([sys.executable, "-c", WORKER, command])
    pid_in(pid_file)

    worker.send_signal(signal.SIGKILL)
    worker.wait(10)

    assert_ends(pid_file)


WORKER = """
import asyncio, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "dominds.settings"
import django
django.setup()
from dialogs.agents.tools.mcp_servers import call_tool
from dialogs.models import McpServer
asyncio.run(call_tool(McpServer(name="lab", transport="stdio", command=sys.argv[1]), "add", {}))
"""


def test_several_calls_at_once_have_a_server_each(make_server: MakeServer) -> None:
    server = make_server()

    async def together() -> list[str]:
        calls = (call_tool(server, "add", {"first": number, "second": 1}) for number in range(3))
        return await asyncio.gather(*calls)

    assert asyncio.run(together()) == ["1", "2", "3"]


@pytest.mark.parametrize("most", [100, 2])
def test_every_page_of_the_tools_is_read_and_one_too_many_is_listed_as_left_out(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(mcp_servers, "MOST_TOOLS", most)

    tools = asyncio.run(read_tools(make_server("pages")))

    assert [tool["name"] for tool in tools] == ["tool1", "tool2", "tool3"]
    why = "the server has more than 2 tools, and none is taken from this one on"
    assert [tool.get(LEFT_OUT) for tool in tools] == [None, None, why if most == 2 else None]


def test_a_listing_keeps_what_an_agent_is_told(make_server: MakeServer, pid_file: Path) -> None:
    tools = asyncio.run(read_tools(make_server()))

    add = next(tool for tool in tools if tool["name"] == "add")
    assert len(tools) == 8
    assert add["description"] == "Add two numbers."
    assert add["inputSchema"]["required"] == ["first", "second"]
    assert add["annotations"]["readOnlyHint"] is True
    assert_ends(pid_file)


@pytest.mark.django_db(transaction=True)
def test_stale_servers_are_asked_and_the_others_left_alone(agent: Agent, make_server: MakeServer) -> None:
    new = make_server(name="new")
    known = make_server(name="known", command="no-such-program", tools=[{"name": "a"}], tools_read_at=timezone.now())
    broken = make_server(name="broken", command="no-such-program")
    just_failed = make_server(name="failed", command="no-such-program")
    record_problem(server=just_failed, problem="as before")

    async_to_sync(refresh)(servers_to_ask(agent))

    for server in (new, known, broken, just_failed):
        server.refresh_from_db()
    assert len(new.tools) == 8
    assert (known.problem, just_failed.problem) == ("", "as before")
    assert "cannot be started" in broken.problem


@pytest.mark.django_db(transaction=True)
def test_a_failure_is_tried_again_after_some_minutes(agent: Agent, make_server: MakeServer) -> None:
    server = make_server()
    record_problem(server=server, problem="was away")
    McpServer.objects.update(tools_read_at=timezone.now() - timedelta(minutes=6))

    async_to_sync(refresh)(servers_to_ask(agent))

    server.refresh_from_db()
    assert (server.problem, len(server.tools)) == ("", 8)


def test_a_server_that_cannot_be_asked_keeps_its_tools(agent: Agent, make_server: MakeServer) -> None:
    server = make_server(command="no-such-program")
    record_tools(server=server, tools=[{"name": "add"}])

    ask_and_record(server)

    assert [tool.name for tool in mcp_tools(agent)] == ["lab__add"]


@pytest.mark.django_db(transaction=True)
def test_refreshing_never_raises(
    agent: Agent, make_server: MakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_server: McpServer) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("dialogs.agents.tools.mcp_servers.read_tools", broken)
    make_server()

    async_to_sync(refresh)(servers_to_ask(agent))

    assert "could not be asked" in caplog.text


def test_a_tool_whose_schema_leads_elsewhere_is_recorded_with_why_it_is_not_offered(
    agent: Agent, make_server: MakeServer
) -> None:
    server = make_server()
    agent.mcp_servers.add(server)

    ask_and_record(server)

    server.refresh_from_db()
    told = {tool["name"]: tool.get("leftOut", "") for tool in server.tools}
    assert "refers to something outside itself" in told["scattered"]
    assert told["add"] == ""
    assert not any(tool.name.endswith("scattered") for tool in mcp_tools(agent))
