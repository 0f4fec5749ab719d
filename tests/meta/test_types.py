"""Whoever uses the package is told by a type checker what is right and what is not."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import medthink

ROOT = Path(__file__).resolve().parents[2]
RIGHT = """
import medthink
from medthink import Benchmark, Condition, ModelError, Run, default_condition

benchmark: Benchmark = medthink.Benchmark.open("bench")
for case in benchmark["test"]:
    letters: list[str] = list(case.question.options)
    earned: float = medthink.reward(case, "B", task="answer").total
condition: Condition = default_condition("twi")
try:
    run: Run = medthink.run(benchmark, model="baseline/random", out="runs/random", condition=condition)
    scores: medthink.Scores = run.score()
    print(run.to_pandas())
    comparison: medthink.Comparison = medthink.compare([run, "runs/other"])
    page = medthink.report([run], "report.html", figure="overview.svg").read_text()
    print(medthink.check(benchmark).errors, medthink.synth("phantoms", cases=30).splits, page.upper())
except ModelError as error:
    kind: str = error.kind
except medthink.MedThinkError as error:
    remedy: str = error.remedy
"""
WRONG = """
import medthink
medthink.run("bench", model=7, out="runs/random")
medthink.run("bench", out="runs/random")
medthink.Benchmark.open("bench").filter(colour="red")
medthink.default_condition("twi").image_share.upper()
answer: int = next(iter(medthink.Benchmark.open("bench"))).reference.answer
medthink.nothing_of_the_kind
medthink.compare("runs/one", 7)
medthink.report(["runs/one"], "report.html", colour="red")
medthink.Run.open("runs/one").score(data=7)
medthink.synth(cases=3)
"""


def check_types(folder: Path, **scripts: str) -> dict[str, list[int]]:
    """The lines at which the type checker objects, by script."""
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text)
    files = [str(folder / f"{name}.py") for name in scripts]
    words = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-color-output", *files]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, list[int]] = {name: [] for name in scripts}
    for name, line in re.findall(r"(\w+)\.py:(\d+): error", told.stdout):
        found[name].append(int(line))
    assert told.returncode == any(found.values()), told.stderr
    return found


def test_right_use_passes_and_every_wrong_line_is_found(tmp_path: Path) -> None:
    found = check_types(tmp_path, right=RIGHT, wrong=WRONG)
    assert found["right"] == []
    assert sorted(set(found["wrong"])) == list(range(3, WRONG.count("\n") + 1))


def test_what_is_exported_is_what_is_typed() -> None:
    tree = ast.parse(Path(medthink.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    typed = {
        name.asname or name.name: f"{node.module}:{name.name}" if name.asname else node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert typed == medthink._EXPORTS | medthink._ROOMS
    (listed,) = (node.value for node in tree.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(listed)) == sorted(medthink.__all__)
