"""A small benchmark and runs over it by embedded baselines."""

from pathlib import Path

import pytest

from medthink.runs.manifest import RunSpec
from medthink.runs.selection import Selection
from medthink.runs.session import run_session
from medthink.workflow.condition import Condition
from small_benchmark import write_benchmark


@pytest.fixture(scope="session")
def bench(tmp_path_factory) -> Path:
    return write_benchmark(tmp_path_factory.mktemp("scoring") / "bench", cases=40)


@pytest.fixture
def make_run(bench, tmp_path):
    def make(name: str, **changes) -> Path:
        fields = {"benchmark": bench, "model": "baseline/random", "out": tmp_path / name} | changes
        run_session(RunSpec(**fields))
        return tmp_path / name

    return make


@pytest.fixture
def twi() -> dict:
    return {"task": "twi", "condition": Condition(findings="self", summary="self")}


@pytest.fixture
def some_cases() -> Selection:
    return Selection(split="test", limit=10)
