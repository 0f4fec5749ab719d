"""A run without --out has a folder by its name, and a sweep or a folder of runs stands for its runs."""

import json

import pytest

from medthink.cli.command import run_command
from small_benchmark import write_benchmark

PLAN = 'data = "bench"\nout = "sweep"\nmodels = ["baseline/random", "baseline/longest"]\n'


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_benchmark(tmp_path / "bench", cases=4)
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ([], "baseline-random_answer"),
        (["--task", "twi", "--image-share", "50%"], "baseline-random_twi_image-share-50"),
        (
            ["--cases", "100", "--cases", "101,102", "--hide-history"],
            "baseline-random_answer_cases-100-101-102_show-his",
        ),
    ],
)
def test_a_run_without_out_is_named_as_a_sweep_names_its_runs(place, flags, name, capsys):
    assert run_command(["run", "bench", "--model", "baseline/random", *flags]) == 0
    assert [one.name.startswith(name) for one in (place / "runs").iterdir()] == [True]
    assert run_command(["run", "bench", "--model", "baseline/random", *flags]) == 0
    assert "0 calls made in this session" in capsys.readouterr().out


def test_a_sweep_and_all_it_holds_stand_for_its_runs(place, capsysbinary):
    assert run_command(["sweep", "plan.toml"]) == 0
    held = sorted(map(str, (place / "sweep").glob("[!.]*")))
    assert any(one.endswith("sweep.json") for one in held)
    for words in (["sweep"], held):
        capsysbinary.readouterr()
        assert run_command(["score", *words, "--json"]) == 0
        assert len(json.loads(capsysbinary.readouterr().out)) == 2
        assert run_command(["compare", *words]) == 0
        assert run_command(["report", *words, "-o", "report.html"]) == 0


def test_a_folder_without_runs_is_said_to_be_no_run(place, capsys):
    (place / "empty").mkdir()
    assert run_command(["score", "empty"]) == 2
    assert "empty: this is not a run" in capsys.readouterr().err
