"""A small benchmark and runs on it, made once for all tests of the room."""

from pathlib import Path

import pytest

from made_runs import make_run
from medthink.report.runs import ComparableGroup, group_entries, load_entries
from small_benchmark import write_benchmark

CASES = 12


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_benchmark(tmp_path_factory.mktemp("report") / "bench", CASES)


@pytest.fixture(scope="session")
def runs(bench: Path) -> dict[str, Path]:
    """Shares, efforts and sizes varied, a cued run, a discussion, several samples, silent cases, unknown prices."""
    root = bench.parent / "runs"
    made = {
        "share-0": {"model": "openai/big", "skill": 0.3, "image_share": 0.0, "usd": 0.001},
        "share-100": {"model": "openai/big", "skill": 0.9, "usd": 0.004, "silent": 2},
        "low": {"model": "openai/deep", "skill": 0.5, "effort": "low", "tokens": 100, "usd": 0.002},
        "high": {"model": "openai/deep", "skill": 0.6, "effort": "high", "tokens": 900, "usd": 0.01},
        "small": {"model": "server/kin-4b", "skill": 0.4, "task": "twi", "usd": None, "tokens": None},
        "large": {"model": "server/kin-27b", "skill": 0.6, "task": "twi", "usd": None, "tokens": None},
        "cued": {"model": "openai/deep", "skill": 0.8, "task": "twi", "findings": "expert", "summary": "expert"},
        "discussion": {"model": "openai/deep", "task": "discussion"},
        "thrice": {"model": "openai/dice", "skill": 0.5, "samples": 3},
    }
    return {name: make_run(root / name, bench, **options) for name, options in made.items()}


@pytest.fixture(scope="session")
def groups(runs: dict[str, Path]) -> list[ComparableGroup]:
    return group_entries(load_entries(list(runs.values())))


@pytest.fixture(scope="session")
def blind(groups: list[ComparableGroup]) -> ComparableGroup:
    return groups[0]
