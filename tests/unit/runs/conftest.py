"""A small benchmark for the tests of runs."""

import pytest

from small_benchmark import write_benchmark


@pytest.fixture
def benchmark(tmp_path):
    return write_benchmark(tmp_path / "bench", cases=12)
