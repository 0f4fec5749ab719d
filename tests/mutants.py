"""`make mutants`: change one small place of the product at a time, and see whether a test fails.

First every test file of the rooms below is run under `coverage`, which tells what lines it runs and what that costs. A
mutant is then given to the files that run its line, the cheapest first, in a process that imports the changed module in
place of the original. It is killed if a test fails, or takes many times the CPU that it takes without the change.
"""

import argparse
import ast
import importlib.abc
import importlib.util
import os
import random
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import numpy
import pyarrow.parquet
import pytest
import scipy.stats

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/medthink"
TARGETS = (
    "stats", "scoring", "judge/judged.py", "runs/calls/budget.py", "workflow/parsing", "board/ranking.py",
    "readers/agreement.py",
)  # fmt: skip
ROOMS = ("board", "judge", "readers", "report", "runs", "scoring", "stats", "workflow")
TESTS = (*(f"tests/unit/{room}" for room in ROOMS), "tests/property", "tests/oracle")
# Imported once, before the processes part.
PRELOADED = (numpy, pyarrow.parquet, scipy.stats)
HANGS_S, SLOWER, GRACE_S = 60, 5, 20
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Break: ast.Continue, ast.Continue: ast.Break,
}  # fmt: skip
RENAMED = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Messages and types are left as they are.
UNTOUCHED = (ast.Raise, ast.Assert, ast.JoinedStr)
UNTOUCHED_FIELDS = ("annotation", "returns", "decorator_list")
DECIDED_WITHIN = (ast.Compare, ast.BoolOp, ast.UnaryOp)


class Mutant(NamedTuple):
    """One change of a module: its number there, the lines from its statement to its end, and how it reads."""

    path: Path
    number: int
    first: int
    last: int
    change: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(PACKAGE)}:{self.first}: {self.change}"


class Place(NamedTuple):
    """A node, the field of its parent that holds it, and the first line of its statement."""

    parent: ast.AST
    field: str
    at: int | None
    node: ast.AST
    first: int

    def put(self, node: ast.AST) -> None:
        """Put another node there."""
        if self.at is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.at] = node


def mutate(path: Path) -> Iterator[tuple[Mutant, ast.Module]]:
    """Every mutant of a module; the tree is in that state until the next one is asked for."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    number = 0
    for place in list(_places(tree, 1)):
        for new in _alternatives(place):
            change = f"{_shown(place.node)}  →  {_shown(new)}"
            place.put(ast.copy_location(new, place.node))
            yield Mutant(path, number, place.first, place.node.end_lineno or 0, change), tree  # type: ignore[attr-defined]
            place.put(place.node)
            number += 1


def _places(parent: ast.AST, first: int) -> Iterator[Place]:
    for field, value in ast.iter_fields(parent):
        # What a class is defined with, such as `frozen`, says nothing of what it does.
        if field in UNTOUCHED_FIELDS or (field == "keywords" and isinstance(parent, ast.ClassDef)):
            continue
        for at, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST) and not isinstance(node, UNTOUCHED):
                start = node.lineno if isinstance(node, ast.stmt) else first
                if hasattr(node, "lineno"):
                    yield Place(parent, field, at, node, start)
                yield from _places(node, start)


def _alternatives(place: Place) -> Iterator[ast.AST]:
    """What could stand there instead."""
    node = place.node
    if place.field in ("test", "ifs") and not isinstance(node, DECIDED_WITHIN):
        yield ast.UnaryOp(ast.Not(), node)
    match node:
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Name(id=name) if name in RENAMED and place.field == "func":
            yield ast.Name(RENAMED[name], node.ctx)
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case _:
            yield from _with_another_operator(node)


def _with_another_operator(node: ast.AST) -> Iterator[ast.AST]:
    operator = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", node)
    if type(operator) not in SWAPPED:
        return
    new = SWAPPED[type(operator)]()
    match node:
        case ast.Compare(left=left, ops=[_], comparators=right):
            yield ast.Compare(left, [new], right)
        case ast.BinOp(left=left, right=right) if not _is_text(left, right):
            yield ast.BinOp(left, new, right)
        case ast.AugAssign(target=target, value=value):
            yield ast.AugAssign(target, new, value)
        case ast.BoolOp(values=values):
            yield ast.BoolOp(new, values)
        case ast.Break() | ast.Continue():
            yield new


def _is_text(*nodes: ast.AST) -> bool:
    return any(isinstance(one, ast.JoinedStr) or isinstance(getattr(one, "value", None), str) for one in nodes)


def _shown(node: ast.AST) -> str:
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split())[:70]


class Recorder:
    """A plugin of pytest: notes what each file runs, spends and fails."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.spent_s: Counter[str] = Counter()
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        file = str(item.path.relative_to(ROOT))
        self.measured.switch_context(file)
        before = _cpu_s()
        done = yield
        self.spent_s[file] += _cpu_s() - before
        self.measured.switch_context("")
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid.partition("::")[0])


def _cpu_s() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def record(folder: Path, tests: list[str]) -> None:
    """Run the tests once, and write down what each file of them runs and spends, those that fail left out."""
    measured = coverage.Coverage(data_file=str(folder / "lines"), source=[str(PACKAGE)], config_file=False)
    recorder = Recorder(measured)
    measured.start()
    pytest.main(["-p", "no:cacheprovider", *tests], plugins=[recorder])
    measured.stop()
    measured.save()
    kept = [f"{spent:.2f}\t{file}\n" for file, spent in recorder.spent_s.items() if file not in recorder.failed]
    (folder / "spent").write_text("".join(kept), encoding="utf-8")


class Lines:
    """The test files that run a line, and the CPU seconds of each."""

    def __init__(self, folder: Path) -> None:
        rows = [line.split("\t") for line in (folder / "spent").read_text(encoding="utf-8").splitlines()]
        self.spent_s = {file: float(spent) for spent, file in rows}
        self._data = coverage.CoverageData(str(folder / "lines"))
        self._data.read()

    def files_of(self, mutant: Mutant) -> list[str]:
        """The files that run a mutant's lines, cheapest first; of what runs at import, all that run the module."""
        lines = self._data.contexts_by_lineno(str(mutant.path))
        within = {file for line in range(mutant.first, mutant.last + 1) for file in lines.get(line, ())}
        if within == {""}:
            within = {file for files in lines.values() for file in files}
        return sorted(within & self.spent_s.keys(), key=self.spent_s.__getitem__)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed tree."""

    def __init__(self, mutant: Mutant, tree: ast.Module) -> None:
        parts = mutant.path.relative_to(PACKAGE.parent).with_suffix("").parts
        self._package = parts[-1] == "__init__"
        self._name = ".".join(parts[:-1] if self._package else parts)
        self._path = mutant.path
        self._code = compile(ast.fix_missing_locations(tree), str(mutant.path), "exec")

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        below = [str(self._path.parent)] if self._package else None
        if name == self._name:
            return importlib.util.spec_from_file_location(
                name, self._path, loader=self, submodule_search_locations=below
            )
        return None

    def exec_module(self, module: Any) -> None:
        exec(self._code, vars(module))


def attempt(mutant: Mutant, files: list[str], limit_s: float) -> int:
    """Start a process that runs the tests over a mutant; it exits with 0 if no test fails."""
    pid = os.fork()
    if pid:
        return pid
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s) + 5))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    _, tree = next(islice(mutate(mutant.path), mutant.number, None))
    sys.meta_path.insert(0, Changed(mutant, tree))
    quietly = ["-x", "-p", "no:cacheprovider", "-p", "no:faulthandler", f"--timeout={HANGS_S}"]
    code = pytest.main([*quietly, *files])
    os._exit(0 if code == pytest.ExitCode.OK else 1)


def judge(mutants: list[Mutant], lines: Lines, jobs: int) -> list[Mutant]:
    """The mutants that survive."""
    survivors = [one for one in mutants if not lines.files_of(one)]
    due = [one for one in mutants if lines.files_of(one)]
    running: dict[int, Mutant] = {}
    while due or running:
        while due and len(running) < jobs:
            mutant = due.pop()
            files = lines.files_of(mutant)
            limit_s = GRACE_S + SLOWER * sum(lines.spent_s[file] for file in files)
            running[attempt(mutant, files, limit_s)] = mutant
        pid, status = os.wait()
        ended = running.pop(pid)
        if os.waitstatus_to_exitcode(status) == 0:
            survivors.append(ended)
    return sorted(survivors)


def main() -> int:
    """Judge a sample of each target, and print the scores and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("targets", nargs="*", default=TARGETS, metavar="TARGET", help="a folder or file of medthink")
    parser.add_argument("--sample", type=int, default=10**6, help="at most so many mutants of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="a mutant may wait for nothing")
    parser.add_argument("--tests", nargs="*", default=TESTS)
    given = parser.parse_args()
    os.chdir(ROOT)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if pid := os.fork():
            os.waitpid(pid, 0)
        else:
            record(folder, list(given.tests))
            os._exit(0)
        lines = Lines(folder)
        for target in given.targets:
            _print_target(target, given, lines)
    return 0


def _print_target(target: str, given: argparse.Namespace, lines: Lines) -> None:
    place = PACKAGE / target
    every = [mutant for path in sorted(place.rglob("*.py")) or [place] for mutant, _ in mutate(path)]
    drawn = random.Random(given.seed).sample(every, min(given.sample, len(every)))
    survivors = judge(drawn, lines, given.jobs)
    killed = len(drawn) - len(survivors)
    print(f"{target}: {killed} of {len(drawn)} killed ({killed / len(drawn):.0%}), {len(every)} in all", flush=True)
    for one in survivors:
        print(f"  {one}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
