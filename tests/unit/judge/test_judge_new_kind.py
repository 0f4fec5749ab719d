"""A new kind of judging is one module, one prompt and one registry line; everything else follows.

The three are put into a copy of the package, which then judges, is examined, makes lists, compares and reports.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import medthink
from expert_benchmark import write_expert_benchmark
from ledger_rows import replace_predictions
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session

TOY = Path(__file__).parents[2] / "support/toy_kind"
LINES = {
    "from medthink.judge.kinds.discussion import DiscussionKind\n": (
        "from medthink.judge.kinds.certainty import CertaintyKind\n"
    ),
    "        PreferenceKind(),\n": "        CertaintyKind(),\n",
}
COMMANDS = """
import sys
from medthink.cli.command import run_command
run, exam, lists, page = sys.argv[1:]
def do(*words, code=0):
    found = run_command(list(words))
    assert found == code, (words, found)
do("judge", run, "--judge", "baseline/rules", "--kinds", "certainty")
do("exam", run, "--judge", "baseline/rules", "--kinds", "certainty", "--count", "2", "--out", exam)
shares = ["--readers-per-sheet", "1", "--check-share", "0", "--repeat-share", "0"]
do("reading", "lists", run, "--readers", "anna", *shares, "--out", lists)
from pathlib import Path
from medthink.core.tables import read_table, write_table
path = Path(lists) / "anna.csv"
rows = [dict(row.cells) for row in read_table(path).rows]
for row in rows:
    row["certainty"] = "hedged" if "may" in row["text"] else "plain"
write_table(path, list(rows[0]), rows)
do("agreement", run, str(path), "--key", f"{lists}-key.json")
do("report", run, "-o", page)
from medthink.readers.training import fits_training
assert fits_training("steps") and not fits_training("certainty")
"""


def test_a_new_kind_is_one_module_one_prompt_and_one_line(tmp_path):
    package = tmp_path / "src/medthink"
    # With what is compiled already: compiling it all would take longer than the rest.
    shutil.copytree(Path(medthink.__file__).parent, package)
    shutil.copy(TOY / "certainty.py", package / "judge/kinds")
    shutil.copy(TOY / "certainty.md", package / "judge/prompts")
    registry = package / "judge/kinds/__init__.py"
    text = registry.read_text()
    for line, added in LINES.items():
        assert line in text
        text = text.replace(line, added + line)
    registry.write_text(text)
    run = tmp_path / "run"
    run_session(
        RunSpec(benchmark=write_expert_benchmark(tmp_path / "bench", cases=4), model="baseline/random", out=run)
    )
    path = run / "predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rationale = {"prediction_rationale": "There is a mass. It may grow."}
    replace_predictions(run, "".join(json.dumps(row | rationale) + "\n" for row in rows).encode())
    places = [run, tmp_path / "exam", tmp_path / "lists", tmp_path / "report.html"]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, *map(str, places)],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "160"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Certainties · baseline/rules" in done.stdout and "50.0 %" in done.stdout
    assert "Exam in certainty" in done.stdout
    assert "reader–judge: anna and baseline/rules" in done.stdout
    page = (tmp_path / "report.html").read_text()
    assert "Certainty of the reasoning" in page and "BELOW THE FLOOR: finds" in page
    assert "sureness:" in (tmp_path / "lists/how-to-read.txt").read_text()
