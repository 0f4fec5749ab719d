"""From benchmark to report without the shell, in a script and inside a running event loop."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

import medthink
from judged_run import make_run
from medthink.cli.command import run_command
from medthink.judge.session import JudgeOptions, JudgeSpec


def go_through(folder: Path) -> medthink.Comparison:
    """The whole way, as a notebook would."""
    benchmark = medthink.synth(folder / "bench", cases=12, seed=1)
    assert not medthink.check(benchmark, images=False).errors
    names = ("random", "longest", "guesser")
    runs = [medthink.run(benchmark, model=f"baseline/{name}", out=folder / name) for name in names]
    assert runs[0].score().answers is not None
    page = medthink.report(runs, folder / "report.html", csv=folder / "runs.csv")
    assert page == folder / "report.html" and "</html>" in page.read_text(encoding="utf-8")
    assert len((folder / "runs.csv").read_text(encoding="utf-8").splitlines()) == 4
    return medthink.compare(runs)


def test_the_whole_way_in_a_script(tmp_path: Path) -> None:
    assert go_through(tmp_path).n_cases == 3


def test_the_whole_way_inside_a_running_loop(tmp_path: Path) -> None:
    async def cell() -> medthink.Comparison:
        return go_through(tmp_path)

    assert asyncio.run(cell()).n_cases == 3


def test_a_run_becomes_a_data_frame(tmp_path: Path) -> None:
    benchmark = medthink.synth(tmp_path / "bench", cases=12)
    run = medthink.run(benchmark, model="baseline/longest", out=tmp_path / "run")
    frame = run.to_pandas()
    assert list(frame["case"]) == [one.case for one in run.predictions()]
    assert list(frame["prediction"]) == [one.prediction for one in run.predictions()]
    assert set(frame["state"]) == {"ok"}


def test_python_and_the_shell_make_the_same_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = medthink.synth(tmp_path / "bench", cases=12)
    run = medthink.run(benchmark, model="baseline/longest", out=tmp_path / "run")
    kept = tmp_path / "run/scores.json"
    run.score()
    by_python = kept.read_bytes()
    kept.unlink()
    assert run_command(["score", str(tmp_path / "run")]) == 0
    assert kept.read_bytes() == by_python
    capsys.readouterr()


def test_a_page_or_figure_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(medthink.UsageError, match=r"must end in \.html"):
        medthink.report(["runs/one"], tmp_path / "report.svg")
    with pytest.raises(medthink.UsageError, match=r"must end in \.svg, \.pdf, \.png"):
        medthink.report(["runs/one"], tmp_path / "report.html", figure="figure.bmp")


def test_a_room_is_called_whether_or_not_it_was_imported_before() -> None:
    code = "import medthink; before = medthink.report; import medthink.report.page; assert medthink.report is before"
    subprocess.run([sys.executable, "-W", "error", "-c", f"{code}; assert callable(before)"], check=True)


def test_a_script_without_a_guard_makes_phantoms(tmp_path: Path) -> None:
    script = tmp_path / "make.py"
    script.write_text("import medthink\nprint(len(medthink.synth('bench', cases=34)))\n")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "34\n"


def test_a_run_is_judged_from_python_as_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, cases=2)
    judged = medthink.judge(run, "baseline/rules", splitter="sentences")
    (seat,) = judged["steps"]
    assert "baseline/rules" in repr(seat)
    before = (run / "judgements.jsonl").read_bytes()
    assert run_command(["judge", str(run), "--judge", "baseline/rules", "--segmenter", "sentences", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calls_made_now"] == 0
    assert (run / "judgements.jsonl").read_bytes() == before


def test_python_can_ask_a_judge_whatever_the_shell_can() -> None:
    fields = set(JudgeSpec.__struct_fields__) - {"run", "judges"}
    assert set(JudgeOptions.__annotations__) == fields
