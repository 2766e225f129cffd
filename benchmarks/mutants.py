"""Would the tests notice? Every small change of a module is tried in a process of its own, against the tests beside it.

`python -m benchmarks.mutants [module or folder …] [--sample N --seed N]`. The tests are collected once. What stands
in a function is changed in a fork, which runs the tests that call this function, the quickest first, until one fails.
What is run when a module is imported (tables, defaults, patterns) is changed in a Python of its own, with all tests.
A change that no test notices is printed: a test is missing, or code that does nothing, or it makes no difference.
"""

from __future__ import annotations

import argparse
import difflib
import gc
import importlib.machinery
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings

from benchmarks.mutations import Key, Mutant, mutants

ROOT = Path(__file__).parent.parent
CHOOSING, STRATEGIES = "tests/health/compaction/choosing", "tests/health/compaction/strategies"
# What is changed, and the tests that are to notice it: the first that fits.
TESTS: dict[str, tuple[str, ...]] = {
    "health/monitor": ("tests/health/monitor",),
    "dialogs/driver/decide.py": ("tests/dialogs/driver/test_decide.py", "tests/dialogs/driver/test_guard_rules.py"),
    "dialogs/driver/watch.py": ("tests/dialogs/driver/test_watch.py",),
    "health/compaction/compact.py": (
        "tests/health/compaction/test_compact.py",
        "tests/health/compaction/test_always_a_result.py",
        "tests/health/compaction/test_recovery.py",
        "tests/health/compaction/test_runner.py",
    ),
    "health/compaction/accounts.py": (
        f"{CHOOSING}/test_losses.py",
        "tests/health/compaction/test_coverage.py",
    ),
    "health/compaction/reward.py": (
        "tests/health/compaction/test_reward.py",
        "tests/health/compaction/test_compact.py",
    ),
    "health/compaction/laws": ("tests/health/compaction/laws",),
    "health/compaction/choosing/pruning.py": (f"{STRATEGIES}/test_prune_with_agent.py",),
    "health/compaction/choosing/scoring.py": (
        f"{CHOOSING}/test_scoring.py",
        f"{STRATEGIES}/test_discard_low_rel.py",
        f"{STRATEGIES}/test_prioritize_recent.py",
    ),
    "health/compaction/choosing/summaries.py": (
        f"{CHOOSING}/test_summaries.py",
        f"{STRATEGIES}/test_prune_with_agent.py",
        f"{STRATEGIES}/test_summarize_old.py",
    ),
    "health/compaction/choosing/sources.py": (
        f"{CHOOSING}/test_sources.py",
        f"{STRATEGIES}/test_select_passages.py",
        *(f"tests/health/compaction/test_{name}.py" for name in ("newest_value", "own_words", "read_once")),
        *(f"tests/health/compaction/test_{name}.py" for name in ("refill", "repeats", "results_of_tools")),
    ),
    "health/compaction/choosing": (
        f"{CHOOSING}/test_choose.py",
        f"{CHOOSING}/test_matching.py",
        f"{CHOOSING}/test_worth.py",
        f"{STRATEGIES}/test_select_passages.py",
        "tests/health/compaction/test_own_words.py",
        "tests/health/compaction/test_repeats.py",
    ),
    "dialogs/driver/streaming.py": ("tests/dialogs/driver/test_under_way.py",),
    "dominds/handlers.py": ("tests/dominds/test_page_handler.py",),
    "dialogs/common/channel_layer.py": ("tests/dialogs/common/test_channel_layer.py",),
}
# Seconds of a processor. A change may make a loop endless: what takes so much longer than the tests did is noticed too.
PATIENCE, TIMES = 10.0, 3
# On a busy machine, or where all threads wait for each other, they may take so many times as long.
WAITING = 15
FORK = multiprocessing.get_context("fork")
OPTIONS = ("-qq", "-s", "--no-header", "--no-summary", "-p", "no:cacheprovider", "--reuse-db")
OPTIONS += ("--hypothesis-profile", "mutants")

# Whether an example could be shorter is of no interest here.
hypothesis_settings.register_profile(
    "mutants", deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)


class Tried(NamedTuple):
    path: Path
    mutant: Mutant
    noticed: bool


class Baseline(NamedTuple):
    """How long each test took, in seconds, and which tests call a function."""

    seconds: dict[str, float]
    callers: dict[Key, set[str]]


class Trial:
    """A plugin of pytest: in place of the tests it runs those that matter for each change, once for each."""

    def __init__(self, path: Path, tried: Sequence[Mutant]) -> None:
        self.path, self.mutants, self.source = path, tried, path.read_bytes()
        self.results: list[Tried] = []
        self.seconds = 0.0

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        baseline = self._baseline(session.items)
        self.seconds = sum(baseline.seconds.values())
        functions = _functions(self.path)
        for mutant in self.mutants:
            items = _that_call(mutant, session.items, baseline)
            limit = PATIENCE + TIMES * sum(baseline.seconds[item.nodeid] for item in items)
            process = FORK.Process(target=self._try, args=(mutant, functions, items, limit))
            self.results.append(Tried(self.path, mutant, noticed=not _survives(process, WAITING * limit)))
        return True

    def _baseline(self, items: Sequence[pytest.Item]) -> Baseline:
        receiving, sending = FORK.Pipe(duplex=False)
        process = FORK.Process(target=lambda: sending.send(_measured(self.path, items)))
        process.start()
        sending.close()
        baseline: Baseline = receiving.recv()
        process.join()
        return baseline

    def _try(
        self, mutant: Mutant, functions: dict[Key, list[FunctionType]], items: Sequence[pytest.Item], limit: float
    ) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (ceil(limit), ceil(limit)))
        _be_quiet()
        for code in _codes(compile(mutant.of(self.source), self.path, "exec")):
            for function in functions.get((code.co_qualname, code.co_firstlineno), []):
                function.__code__ = code
        sys.exit(any(_fails(item, after) for item, after in _with_next(items)))


def _survives(process: Any, limit: float) -> bool:
    process.start()
    process.join(limit)
    if process.exitcode is None:
        process.kill()
        process.join()
    return bool(process.exitcode == 0)


def _be_quiet() -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _with_next(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def _fails(item: pytest.Item, after: pytest.Item | None) -> bool:
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=after))


def _measured(path: Path, items: Sequence[pytest.Item]) -> Baseline:
    """Run all tests on the unchanged module. A test that fails already would kill every mutant."""
    baseline = Baseline({}, defaultdict(set))
    for item, after in _with_next(items):
        begin = time.process_time()
        with _Calls(path) as called:
            assert not _fails(item, after), f"{item.nodeid} fails as it is."
        baseline.seconds[item.nodeid] = time.process_time() - begin
        for key in called.keys:
            baseline.callers[key].add(item.nodeid)
    return baseline


class _Calls:
    """The functions of a module that are called meanwhile, in whatever thread."""

    def __init__(self, path: Path) -> None:
        self.keys: set[Key] = set()
        self._path = str(path)

    def __enter__(self) -> _Calls:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_error: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename == self._path:
            self.keys.add((frame.f_code.co_qualname, frame.f_code.co_firstlineno))


def _that_call(mutant: Mutant, items: Sequence[pytest.Item], baseline: Baseline) -> list[pytest.Item]:
    """The tests that call it, fastest first; those that need a database last."""
    assert mutant.function is not None
    callers = baseline.callers.get(mutant.function, set())

    def order(item: pytest.Item) -> tuple[bool, float]:
        return item.get_closest_marker("django_db") is not None, baseline.seconds[item.nodeid]

    return sorted((item for item in items if item.nodeid in callers), key=order)


def _functions(path: Path) -> dict[Key, list[FunctionType]]:
    """The module's functions that exist in memory, found by the garbage collector."""
    gc.unfreeze()
    found = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename == str(path):
            found[each.__code__.co_qualname, each.__code__.co_firstlineno].append(each)
    gc.freeze()
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)


def diff(source: bytes, mutant: Mutant) -> str:
    """The lines that differ."""
    before, after = source.decode().splitlines(), mutant.of(source).decode().splitlines()
    _, _, *lines = difflib.unified_diff(before, after, n=0, lineterm="")
    return "\n".join(line for line in lines if line.strip("+- ") and not line.startswith("@@"))


def _tests_of(path: Path) -> tuple[str, ...]:
    name = str(path.relative_to(ROOT))
    return next(tests for known, tests in TESTS.items() if name == known or name.startswith(f"{known}/"))


def try_module(path: Path, chosen: Callable[[list[Mutant]], list[Mutant]]) -> list[Tried]:
    """In a Python of its own for each module: `main` starts it."""
    every = mutants(path.read_bytes())
    picked = chosen(every)
    trial = Trial(path, [mutant for mutant in picked if mutant.function])
    pytest.main([*_tests_of(path), *OPTIONS], plugins=[trial])
    results = list(trial.results)
    for mutant in picked:
        if mutant.function is None:
            command = [sys.executable, "-m", "benchmarks.mutants", str(path), "--import", str(every.index(mutant))]
            results.append(Tried(path, mutant, noticed=_is_noticed(command, WAITING * (PATIENCE + trial.seconds))))
    return results


def _is_noticed(command: list[str], limit: float) -> bool:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=limit, check=False).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def import_changed(path: Path, mutant: Mutant) -> int:
    """Run the tests of a module that is changed as it is imported."""
    plain = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> Any:
        is_changed = Path(loader.path) == path
        return compile(mutant.of(path.read_bytes()), path, "exec") if is_changed else plain(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    return int(pytest.main([*_tests_of(path), *OPTIONS, "-x"]))


def told(results: Sequence[Tried]) -> None:
    for path, mutant, noticed in results:
        if not noticed:
            source = path.read_bytes()
            line = source[: mutant.start].count(b"\n") + 1
            print(f"{path.relative_to(ROOT)}:{line}\n{diff(source, mutant)}\n")
    count = Counter(result.noticed for result in results)
    share = 100 * count[True] / max(1, len(results))
    print(
        f"{results[0].path.relative_to(ROOT)}: {len(results)} changes, {count[True]} noticed ({share:.0f} %)",
        flush=True,
    )


def modules(names: Sequence[str]) -> list[Path]:
    places = [ROOT / name for name in names]
    found = [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    return [path for path in found if mutants(path.read_bytes())]


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", default=list(TESTS), help="modules or folders; all that are known by default"
    )
    parser.add_argument("--sample", type=int, help="so many changes of each module, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--import", type=int, dest="at", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    paths = [path.resolve() for path in modules(options.names)]
    if options.at is not None:
        sys.exit(import_changed(paths[0], mutants(paths[0].read_bytes())[options.at]))
    if len(paths) > 1:
        more = [] if options.sample is None else ["--sample", str(options.sample), "--seed", str(options.seed)]
        for path in paths:
            subprocess.run([sys.executable, "-m", "benchmarks.mutants", str(path), *more], cwd=ROOT, check=True)
        return

    def chosen(every: list[Mutant]) -> list[Mutant]:
        if options.sample is None or options.sample >= len(every):
            return every
        drawn = set(random.Random(options.seed).sample(range(len(every)), options.sample))
        return [mutant for at, mutant in enumerate(every) if at in drawn]

    told(try_module(paths[0], chosen))


if __name__ == "__main__":
    main(*sys.argv[1:])
