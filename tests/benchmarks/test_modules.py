"""Each benchmark loads: what it takes from the product or from tests is still called so."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
# One runs them all, one is given an address by another; locust and LangChain are installed when they are asked for.
OF_OTHERS = {"__main__", "crowd", "langgraph_agent", "passed_on"}


@pytest.mark.parametrize("name", sorted({path.stem for path in FOLDER.glob("*.py")} - OF_OTHERS))
def test_a_benchmark_loads(name: str) -> None:
    import_module(f"benchmarks.{name}")
