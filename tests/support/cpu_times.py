"""`--cpu-times`: the CPU seconds of every test file, its children and browsers included, printed after the tests."""

import os
import resource
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

# What is not worth a line.
_SHOWN_FROM_S = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")
_SPENT = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--cpu-times`."""
    parser.addoption("--cpu-times", action="store_true", help="print what each test file spends, children included")


def pytest_configure(config: pytest.Config) -> None:
    """Start counting."""
    config.stash[_SPENT] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count what a test and the fixtures that it sets up spend; a fixture is counted where it is first needed."""
    if not item.config.getoption("--cpu-times"):
        return (yield)
    before = _cpu_s()
    result = yield
    item.config.stash[_SPENT][str(item.path.relative_to(item.config.rootpath))] += _cpu_s() - before  # type: ignore[assignment]
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand a worker's counts to the controller, what it spent outside of tests under `(collecting)`."""
    spent = session.config.stash[_SPENT]
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if session.config.getoption("--cpu-times") and output is not None:
        output["cpu_times"] = {**spent, "(collecting)": _cpu_s() - sum(spent.values())}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker counted."""
    node.config.stash[_SPENT].update(getattr(node, "workeroutput", {}).get("cpu_times", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the files that take most."""
    if spent := config.stash[_SPENT]:
        terminalreporter.section(f"CPU: {sum(spent.values()) / 60:.1f} minutes in {len(spent)} files")
        for name, seconds in spent.most_common():
            if seconds >= _SHOWN_FROM_S:
                terminalreporter.line(f"{seconds:8.1f} s  {name}")


def _cpu_s() -> float:
    """The CPU seconds of this process, of its children that have ended, and of those that still run."""
    ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in ended) + sum(map(_spent_by, _descendants(os.getpid())))


def _descendants(pid: int) -> list[int]:
    children = [int(one) for task in Path(f"/proc/{pid}/task").glob("*/children") for one in _read(task).split()]
    return children + [below for child in children for below in _descendants(child)]


def _spent_by(pid: int) -> float:
    """What a running process and its ended children have spent: fields 14 to 17 of its line."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it ended while we looked
        return ""
