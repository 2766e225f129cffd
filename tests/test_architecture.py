"""Who may reach for whom: the import table of the house, and a few laws beside it.

`docs/architecture.md` tells the reasons at length. A line here that is in your way is a question to ask
aloud, not a line to delete. The last tests show that the checker can fail.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.imports import Module, our_modules, within

NETWORK = (
    "aiohttp",
    "anthropic",
    "channels",
    "http",
    "httpx",
    "openai",
    "redis",
    "requests",
    "socket",
    "ssl",
    "urllib",
)
WAITING = ("asyncio", "celery", "concurrent", "multiprocessing", "subprocess", "threading")
CLOCK_AND_CHANCE = ("random", "secrets", "time", "uuid")
IMPURE = ("django", "asgiref", "os", "pathlib", *NETWORK, *WAITING, *CLOCK_AND_CHANCE)
OURS = ("dominds", "dialogs", "health")
# Top to bottom: nothing imports what stands above it, not even inside a function. The longest name that fits decides.
# `docs/architecture.md` says what each package is, and which three files to read first.
ORDER: tuple[tuple[str, ...], ...] = (
    ("dialogs.management", "health.management", "dominds.management"),
    ("dominds.asgi", "dominds.urls", "dominds.supervisor", "dominds.backups", "dominds.web"),
    ("dialogs.tasks", "dialogs.admin", "dialogs.apps", "dialogs.checks"),
    ("dialogs.sweeper",),
    ("dialogs.pages", "dialogs.templatetags"),
    ("dialogs.mcp_server",),
    ("dialogs.sample",),
    ("dialogs.transfer",),
    ("dialogs.api",),
    ("dialogs.learning",),
    ("dialogs.driver",),
    ("dialogs.compaction",),
    ("dialogs.context",),
    ("dialogs.agents",),
    ("dialogs.turns",),
    ("dialogs.transcript",),
    ("dialogs.llms",),
    ("dialogs.providers",),
    ("dialogs.models",),
    ("dialogs.common",),
    ("health.admin", "health.apps"),
    ("health.transcripts",),
    ("health.services", "health.selectors", "health.reward_log"),
    ("health.adapters",),
    ("health.critic",),
    ("health.limits", "health.configured"),
    ("health.models",),
    ("health.tokens",),
    ("health.compaction",),
    ("health.compaction.strategies",),
    ("health.compaction.choosing",),
    ("health.compaction.laws",),
    ("health.compaction.trimming",),
    ("health.compaction.reading",),
    ("health.compaction.terms", "health.compaction.config"),
    ("health.loops",),
    ("health.monitor",),
    # The version, the Celery application, quick statements: they import nothing of ours.
    ("dominds.__version__", "dominds.celery", "dominds.prepared", "dominds.rows", "dominds.sqlite3"),
    ("dominds.prepared",),
)
# In each package, by feature: what reads, what writes, what shows.
FEATURES = (
    "pages",
    "sample",
    "api",
    "learning",
    "driver",
    "compaction",
    "context",
    "agents",
    "turns",
    "transcript",
    "llms",
)
READS = tuple(f"dialogs.{feature}.reads" for feature in FEATURES)
WRITES = tuple(f"dialogs.{feature}.writes" for feature in FEATURES)
VIEWS = tuple(f"dialogs.{feature}.views" for feature in FEATURES)

MAX_LINES = 400
WRITING_METHODS = frozenset(
    {"save", "create", "update", "delete", "bulk_create", "bulk_update", "get_or_create", "update_or_create"}
)
CLOCK_METHODS = frozenset({"now", "utcnow", "today"})
PURE = (
    "health.monitor",
    "health.compaction",
    "health.critic",
    "health.loops",
    "health.tokens.windows",
    "dialogs.driver.decide",
    "dialogs.turns.state",
)


@dataclass(frozen=True, kw_only=True)
class Law:
    """Modules inside `who` import nothing inside `never`, unless it lies inside `but_may`."""

    who: tuple[str, ...]
    never: tuple[str, ...]
    but_may: tuple[str, ...] = ()
    why: str


TABLE = (
    Law(who=("health.monitor",), never=(*IMPURE, *OURS), but_may=("health.monitor",), why="measured, and pure"),
    Law(who=("health.compaction",), never=(*IMPURE, *OURS), but_may=("health.compaction",), why="estimated, and pure"),
    Law(
        who=("health.critic",),
        never=(*IMPURE, *OURS),
        but_may=("health.critic", "health.compaction"),
        why="it judges values, and nothing by itself",
    ),
    Law(who=("health.loops",), never=(*IMPURE, *OURS), but_may=("health.loops",), why="it judges values"),
    Law(who=("dialogs.driver.decide", "dialogs.turns.state"), never=IMPURE, why="decide, then do"),
    Law(who=("health",), never=("dialogs",), why="one arrow between the apps"),
    Law(
        who=("dialogs.providers",),
        never=("django.db", "dialogs.models", *READS, *WRITES),
        why="a provider speaks to a service, never to the database",
    ),
    Law(who=READS, never=WRITES, why="reads read"),
    Law(who=("health.selectors",), never=("health.services",), why="selectors read"),
    Law(
        who=(*WRITES, "health.services"),
        never=("dialogs.providers",),
        but_may=("dialogs.providers.base", "dialogs.providers.base", "dialogs.providers.addresses"),
        why="writes never call a provider",
    ),
    Law(
        who=("dialogs.mcp_server",),
        never=(*WRITES, "dialogs.providers", "dialogs.driver", "dialogs.compaction", "dialogs.context"),
        but_may=("dialogs.compaction.reads", "dialogs.context.reads"),
        why="the MCP server only reads",
    ),
    Law(
        who=("dialogs.api.canonical", "dialogs.api.chunks"),
        never=(*IMPURE, "dialogs.models", *READS, *WRITES),
        why="what a client's bytes mean is a value",
    ),
    Law(
        who=VIEWS,
        never=("dialogs.providers", "dialogs.driver"),
        but_may=("dialogs.driver.writes",),
        why="views translate, and call reads and writes",
    ),
)


def broken_laws(module: Module) -> list[str]:
    """One readable line for every import that the table forbids."""
    laws = [law for law in TABLE if within(module.name, law.who)]
    return [
        f"{module.name} imports {name}, and {' and '.join(law.who)} may not ({law.why})"
        for law in laws
        for name in sorted(module.imports)
        if within(name, law.never) and not _allowed(name, law, module)
    ]


def _allowed(name: str, law: Law, module: Module) -> bool:
    """`from package import part` names the package too: that alone is no offence when the part is allowed."""
    return within(name, law.but_may) or any(
        within(other, law.but_may) and other.startswith(f"{name}.") for other in module.imports
    )


def _knows_messages_and_wire(module: Module) -> bool:
    stored = {"dialogs.models.Message", "dialogs.models.message.Message"}
    return bool(stored & module.imports) and "dialogs.providers.base.ChatMessage" in module.imports


def modules(*prefixes: str, but: str = "") -> list[Module]:
    """Every module of ours inside `prefixes`, but one."""
    return [module for module in our_modules() if within(module.name, prefixes or OURS) and module.name != but]


def test_a_module_imports_only_what_the_table_lets_it() -> None:
    assert [line for module in modules() for line in broken_laws(module)] == []


def place(name: str) -> int | None:
    """Which step of the order a module stands on, counted from the top; None for what is no part of it."""
    found = [(len(part), step) for step, parts in enumerate(ORDER) for part in parts if within(name, (part,))]
    return max(found)[1] if found else None


def looks_up(module: Module) -> list[str]:
    here = place(module.name)
    # `from package import part` names the package too: the part alone counts.
    parts = {name for name in module.imports if not any(other.startswith(f"{name}.") for other in module.imports)}
    steps = {name: place(name) for name in parts}
    return sorted(name for name, step in steps.items() if here is not None and step is not None and step < here)


def test_no_import_goes_up() -> None:
    """What one needs of a module above it is moved down."""
    assert {module.name: up for module in modules() if (up := looks_up(module))} == {}


def test_every_package_of_dialogs_has_its_place() -> None:
    lost = [module.name for module in our_modules() if place(module.name) is None and "." in module.name]

    assert [name for name in lost if name.startswith("dialogs.")] == []


def test_the_order_names_only_what_is_there() -> None:
    names = {module.name for module in our_modules()}

    assert [part for parts in ORDER for part in parts if part not in names and part != "dominds.__version__"] == []


@pytest.mark.parametrize(
    ("name", "text", "goes_up"),
    [
        ("dialogs.models.llm", "from dialogs.transcript.reads import path", True),
        # Inside a function it counts too.
        ("dialogs.common.schedule", "def late():\n    import dialogs.models", True),
        ("health.compaction.reading.facts", "from health.compaction.laws.cuts import cuts", True),
        ("dialogs.driver.run", "from dialogs.models import Dialog\nfrom dominds import __version__", False),
    ],
)
def test_the_order_can_be_broken(name: str, text: str, goes_up: bool) -> None:
    assert bool(looks_up(Module(name, text))) is goes_up


def test_pure_modules_are_handed_the_time() -> None:
    """None reads the clock: the time is an argument."""
    assert {module.name: read for module in modules(*PURE) if (read := module.called_methods & CLOCK_METHODS)} == {}


def test_reads_and_the_mcp_server_write_nothing() -> None:
    """Writing is for `writes`; for a dict, use `|=`."""
    reading = modules(*READS, "health.selectors", "dialogs.mcp_server")

    assert {module.name: calls for module in reading if (calls := module.called_methods & WRITING_METHODS)} == {}


def test_only_broadcast_sends_to_groups() -> None:
    sending = {"group_send", "get_channel_layer"}

    assert [module.name for module in modules(but="dialogs.common.broadcast") if module.names & sending] == []


def test_only_the_border_post_knows_stored_and_sent_messages() -> None:
    """All others translate between Message and ChatMessage in `dialogs.context.border`."""
    assert [module.name for module in modules(but="dialogs.context.border") if _knows_messages_and_wire(module)] == []


def test_a_module_is_short_and_says_what_it_is() -> None:
    written = [module for module in modules() if module.text or not module.is_package]

    assert {module.name: lines for module in written if (lines := module.text.count("\n")) > MAX_LINES} == {}
    assert [module.name for module in written if not module.docstring] == []
    assert [module.name for module in written if "__future__.annotations" not in module.imports] == []


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("health.monitor.levels", "import time", "health.monitor.levels imports time"),
        ("health.monitor.levels", "from health import compaction", "imports health.compaction"),
        ("health.compaction.compact", "from health.monitor.levels import Usage", "imports health.monitor.levels"),
        # An import inside a function counts, and so does a relative one.
        ("health.services", "def late():\n    import dialogs.models", "imports dialogs.models"),
        ("dialogs.providers.openai", "from ..models import LLM", "imports dialogs.models"),
        ("dialogs.providers.openai", "from django import db", "imports django.db"),
        ("dialogs.llms.writes.providers", "from dialogs.providers import probe", "imports dialogs.providers.probe"),
        ("dialogs.driver.decide", "from datetime import datetime\nimport random", "imports random"),
    ],
)
def test_the_checker_names_the_broken_law(name: str, text: str, complaint: str) -> None:
    broken = broken_laws(Module(name, text))

    assert any(complaint in line for line in broken), broken


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("health.monitor.remediation", "from health.monitor.levels import Level\nfrom dataclasses import dataclass"),
        ("dialogs.llms.writes.providers", "from dialogs.providers.base import ModelFacts"),
        ("dialogs.llms.writes.providers", "from dialogs.providers import addresses"),
        ("healthy.monitor", "import dialogs"),  # a like-named stranger is not ours
    ],
)
def test_the_checker_lets_the_rest_pass(name: str, text: str) -> None:
    assert broken_laws(Module(name, text)) == []


def test_the_checker_sees_writes_and_sends_in_code_but_not_in_texts() -> None:
    module = Module("dialogs.turns.reads.bad", '"""Not group_send."""\nrows.filter(id=1).delete()\nprint("x.save()")')

    assert module.called_methods & WRITING_METHODS == {"delete"}
    assert "group_send" not in module.names
