"""The demo's plan on 70 real cases, given drawn images: rules and embedded models only, and the check passes."""

import csv
from pathlib import Path

import pytest

from calling import call_command
from medthink.cases.benchmark import Benchmark
from medthink.cases.check import check_benchmark
from medthink.cli.curate import curate
from medthink.phantoms.painters import paint_jpeg
from medthink.phantoms.painters.scene import ImageSpec
from medthink.phantoms.plan import plan_raw_case
from medthink.phantoms.raw_cases import PLAN

SAMPLE = Path(__file__).parents[3] / "shared/data/eurorad_sample.csv"
MAPPING = """[columns]
id = "case_id"
diagnosis = "FinalDiagnosis"
differential = "DifferentialDiagnosisList"
[headings.PostDescription]
history = "Clinical History:"
findings = "Imaging Findings:"
"""


def _give_images(folder: Path) -> None:
    """The sample is text only: each case gets a picture of its own, drawn."""
    with SAMPLE.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows, start=1):
        shot = plan_raw_case(9, number, options=5, images=1).shots[0]
        (folder / f"{number}.jpg").write_bytes(
            paint_jpeg(shot.view.painter, ImageSpec(shot.sign, 1, shot.size), number)
        )
        row |= {"images": f"{number}.jpg", "image1_caption": "A drawing.", "image1_modality": shot.view.modality}
    with (folder / "cases.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_the_plan_of_the_demo_runs_on_real_cases_and_the_check_passes(tmp_path):
    if not SAMPLE.exists():
        pytest.skip("the sample of real cases is not here")
    _give_images(tmp_path)
    (tmp_path / "map.toml").write_text(MAPPING, encoding="utf-8")
    settings = 'source = "cases.csv"\nmapping = "map.toml"\nlicence = "CC BY-NC-SA 4.0"\norigin = "Eurorad"\n'
    plan = PLAN.format(seed=7).replace('source = "cases.csv"\n', settings)
    (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
    built = call_command(curate, ["build", tmp_path / "plan.toml"])
    assert built.exit_code == 0, built.output
    benchmark = Benchmark.open(tmp_path / "work/benchmark")
    assert not check_benchmark(benchmark, images=True).errors
    assert len(benchmark) >= 25
    assert "too few to train on" in built.output and "clean" not in built.output
