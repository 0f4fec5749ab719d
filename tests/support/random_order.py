"""`--shuffle SEED`: the test files in random order, and the tests of each file too; every order must pass."""

import random
from collections import defaultdict
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--shuffle`."""
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="run the files, and the tests of each, in random order"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle by the seed, so that all workers agree; a file stays together, so that its fixtures are made once."""
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    rng = random.Random(seed)
    files: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.path].append(item)
    together = list(files.values())
    rng.shuffle(together)
    for file in together:
        rng.shuffle(file)
    items[:] = [item for file in together for item in file]
