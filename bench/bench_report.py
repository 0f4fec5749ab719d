"""Time the report of ten runs and weigh it.

    python bench/bench_report.py

The benchmark is 720 cases of about nine phantoms each (a small synthetic one, its cases repeated under new numbers);
the runs are made without a model: half answer, half write all three steps. Scoring is timed apart, since a report
reads the scores that are there already.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from medthink.phantoms.writer import write_benchmark
from medthink.report.guessing import audit_group
from medthink.report.judged import score_judgements
from medthink.report.page import report_page
from medthink.report.runs import group_entries, load_entries

CASES, RUNS = 720, 10


def make_benchmark(folder: Path) -> Path:
    """A synthetic benchmark whose test split is repeated until it has enough cases."""
    write_benchmark(folder, cases=80, seed=1)
    path = folder / "test.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    copies = (rows[place % len(rows)] | {"title": f"Case number {10_000 + place}"} for place in range(CASES))
    path.write_text("".join(json.dumps(row) + "\n" for row in copies), encoding="utf-8")
    return folder


def make_runs(folder: Path, benchmark: Path) -> list[Path]:
    """Ten runs of rising skill."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
    from made_runs import make_run

    words = "There is an opacity in the left lower lobe, best seen on the frontal view, without effusion. "
    return [
        make_run(
            folder / f"run-{number}",
            benchmark,
            model=f"server/made-{number + 1}b",
            task="twi" if number % 2 else "answer",
            skill=0.3 + 0.03 * number,
            words=words * 2,
        )
        for number in range(RUNS)
    ]


def main() -> None:
    """Print seconds and megabytes."""
    with tempfile.TemporaryDirectory() as place:
        benchmark = make_benchmark(Path(place) / "bench")
        runs = make_runs(Path(place), benchmark)
        start = time.perf_counter()
        load_entries(runs)
        scored, worked = time.perf_counter(), time.process_time()
        groups = group_entries(load_entries(runs))
        audited = [audit_group(group, trains=False) for group in groups]
        judged = score_judgements([entry for group in groups for entry in group.entries])
        page = report_page(groups, audited, judged).encode()
        end, worked = time.perf_counter(), time.process_time() - worked
    images = sum(len(case.question.images) for case in groups[0].entries[0].material.cases.values())
    print(f"{RUNS} runs, {CASES} cases, {images:,} images")
    print(f"{'scoring, once':<24}{scored - start:>8.1f} s")
    print(
        f"{'report, runs scored':<24}{end - scored:>8.1f} s   (aim: under 10 s; {worked:.1f} s of them on a processor)"
    )
    print(f"{'size':<24}{len(page) / 1e6:>8.1f} MB  (aim: under 15 MB)")


if __name__ == "__main__":
    main()
