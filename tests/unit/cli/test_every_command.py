"""What holds for every command of click's own tree: a new one must be given its words here."""

import re

import click
import pytest

from build_commands import all_commands
from expert_benchmark import write_expert_benchmark
from judged_run import make_run
from medthink.cli.command import run_command

LEAVES = {
    name.removeprefix("medthink "): one for name, one in all_commands().items() if not isinstance(one, click.Group)
}
WRITERS = [name for name, one in LEAVES.items() if any("--out" in param.opts for param in one.params)]
# The words of each before `-o`, and what it is told to write over: a run or a benchmark, or a file of one of them.
WRITING = {
    "demo": ("", "run"),
    "data pull": ("", "run"),
    "data export": ("bench --format parquet", "run"),
    "data synth": ("--count 4", "run"),
    "curate export": ("bench/test.jsonl --work work", "run"),
    "run": ("bench --model baseline/random", "expert"),
    "merge": ("part1 part2", "expert"),
    "salvage": ("run", "expert"),
    "import": ("run/run.json", "expert"),
    "export": ("run --format vllm-batch", "run/run.json"),
    "report": ("run", "run/run.json"),
    "exam": ("expert --judge baseline/rules", "run"),
    "reading lists": ("run --readers anna,ben", "run"),
    "reading training": ("expert --split test --readers anna,ben", "expert"),
    "reading export": ("run", "run/predictions.jsonl"),
    "submission pack": ("run", "run/predictions.jsonl"),
    "submission hub": ("run", "run/run.json"),
    "board build": ("--store board.sqlite", "run"),
    "board backup": ("--store board.sqlite", "run/ledger.sqlite"),
}
_ADDED = ("board add run --data bench --team ours --store board.sqlite",)
BEFORE = {
    "merge": tuple(f"run bench --model baseline/random --shard {one}/2 --out part{one}" for one in (1, 2)),
    "board build": _ADDED,
    "board backup": _ADDED,
}
# The words of each command that opens a run and needs its benchmark.
OPENING = {
    "audit contamination": "{run}",
    "status": "{run}",
    "show": "{run} --wrong",
    "export": "{run} --format vllm-batch -o asked{number}.jsonl",
    "score": "{run}",
    "compare": "{run} {run}",
    "report": "{run} -o report{number}.html",
    "judge": "{run} --judge baseline/rules",
    "exam": "{run} --judge baseline/rules --count 1 -o exam{number}",
    "agreement": "{run}",
    "reading lists": "{run} --readers anna,ben -o lists{number}",
    "reading training": "{run} --readers anna --count 2 -o training{number}",
    "submission pack": "{run} -o packed{number}.jsonl",
    "submission hub": "{run} -o hub{number}.yaml",
}
# `view` serves until it is stopped, and the store says which run a submission is: both are tested with their commands.
OTHERS = {"view", "board rerun"}


def _opens_a_run(command):
    words = [one.make_metavar(click.Context(command)) for one in command.params if isinstance(one, click.Argument)]
    return re.search(r"\bRUNS?\b", " ".join(words).upper()) and any("--data" in one.opts for one in command.params)


OPENERS = [name for name, one in LEAVES.items() if _opens_a_run(one) and name not in OTHERS]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a judged run, two benchmarks and a board."""
    make_run(tmp_path)
    write_expert_benchmark(tmp_path / "expert", cases=3)
    monkeypatch.chdir(tmp_path)
    assert run_command(["judge", "run", "--judge", "baseline/rules"]) == 0
    return tmp_path


@pytest.mark.parametrize("name", WRITERS)
def test_it_leaves_a_folder_of_another_kind_as_it_is(name, place, capfd):
    words, target = WRITING[name]
    for before in BEFORE.get(name, ()):
        assert run_command(before.split()) == 0
    capfd.readouterr()
    held = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert run_command([*name.split(), *words.split(), "-o", target]) == 2
    told = capfd.readouterr().err
    assert re.search(r"holds a|belongs to|must end in|is not empty|contains other files|this is not a run", told), told
    assert {path: path.read_bytes() for path in held} == held
    assert {path for path in (place / target.split("/")[0]).rglob("*") if path.is_file()} <= held.keys()


@pytest.mark.parametrize("name", OPENERS)
def test_it_finds_a_runs_benchmark_from_another_folder_and_by_data(name, place, monkeypatch, capfd):
    def call(number, *more):
        words = OPENING[name].format(run=place / "run", number=number).split()
        code = run_command([*name.split(), *words, *more])
        told = capfd.readouterr().err
        assert "no longer at" not in told, told
        return code

    at_home = call(1)
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    assert call(2) == at_home
    (place / "bench").rename(place / "moved")
    assert call(3, "--data", str(place / "moved")) == at_home
