"""No command writes into a folder that holds what another command made."""

import pytest

from expert_benchmark import write_expert_benchmark
from judged_run import make_run
from medthink.cli.command import run_command
from medthink.core.errors import UsageError
from medthink.core.files import claim_folder


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.suffix == ".jsonl"}


def test_an_exam_leaves_a_judged_run_as_it_is(tmp_path, capsys):
    run = make_run(tmp_path)
    judge = ["--judge", "baseline/rules"]
    assert run_command(["judge", str(run), *judge]) == 0
    before = files_of(run)
    expert = write_expert_benchmark(tmp_path / "expert", cases=3)
    assert run_command(["exam", str(expert), *judge, "--out", str(run)]) == 2
    assert f"{run} holds a run, not an exam" in capsys.readouterr().err
    assert files_of(run) == before
    assert run_command(["judge", str(run), *judge]) == 0


def test_a_run_a_sweep_and_a_curation_leave_another_kind_as_it_is(tmp_path, capsys):
    run, bench = make_run(tmp_path), tmp_path / "bench"
    (tmp_path / "exam").mkdir()
    (tmp_path / "exam/exam.json").write_text("{}")
    (tmp_path / "plan.toml").write_text('data = "bench"\nout = "run"\nmodels = ["baseline/random"]\n')
    cases = str(bench / "test.jsonl")
    for words, told in (
        (
            ["run", str(bench), "--model", "baseline/random", "--out", str(tmp_path / "exam")],
            "holds an exam, not a run",
        ),
        (["sweep", str(tmp_path / "plan.toml")], "holds a run, not a sweep"),
        (["curate", "timeline", cases, "--work", str(run)], "holds a run, not the work of a curation"),
        (["reading", "lists", str(run), "--readers", "anna,ben", "--out", str(run)], "holds a run, not reading lists"),
    ):
        if words[0] == "reading":
            assert run_command(["judge", str(run), "--judge", "baseline/rules"]) == 0
        assert run_command(words) == 2, words
        assert told in capsys.readouterr().err


def test_a_folder_of_the_same_kind_is_used_again_and_one_with_other_files_only_where_that_is_usual(tmp_path):
    claim_folder(tmp_path / "new", "run.json")
    (tmp_path / "new/notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"is not empty and holds notes.txt, not a run"):
        claim_folder(tmp_path / "new", "run.json")
    claim_folder(tmp_path / "new", "build.json", holds_more=True)
    (tmp_path / "new/run.json").write_text("{}")
    claim_folder(tmp_path / "new", "run.json")
    with pytest.raises(UsageError, match="holds a run, not the work of a curation"):
        claim_folder(tmp_path / "new", "build.json", holds_more=True)


def test_lists_for_readers_and_a_demo_leave_a_benchmark_and_a_run_as_they_are(tmp_path, capsys):
    run = make_run(tmp_path)
    bench = write_expert_benchmark(tmp_path / "expert", cases=3)
    lists = ["reading", "training", str(bench), "--split", "test"]
    before = sorted(bench.rglob("*")) + sorted(run.rglob("*"))
    for words, told in (
        ([*lists, "--readers", "anna,ben", "-o", str(bench)], "holds a benchmark, not reading lists"),
        (["exam", str(bench), "--judge", "baseline/rules", "-o", str(bench)], "holds a benchmark, not an exam"),
        (["demo", "-o", str(run)], "holds a run, not a demo"),
        (["demo", "-o", str(bench)], "holds a benchmark, not a demo"),
    ):
        assert run_command(words) == 2, words
        assert told in capsys.readouterr().err
    assert sorted(bench.rglob("*")) + sorted(run.rglob("*")) == before


def test_no_command_replaces_a_file_that_belongs_to_another(tmp_path, capsys):
    run, bench = make_run(tmp_path), tmp_path / "bench"
    board = tmp_path / "board.sqlite"
    added = ["board", "add", str(run), "--data", str(bench), "--team", "ours", "--store", str(board)]
    assert run_command(added) == 0
    page = str(tmp_path / "r.html")
    owned = "belongs to a run"
    for words, told in (
        (["submission", "pack", str(run), "-o", str(run / "predictions.jsonl")], owned),
        (["submission", "pack", str(run), "-o", str(bench / "test.jsonl")], "belongs to a benchmark"),
        (["submission", "pack", str(run), "-o", str(run / "run.json")], "must end in .jsonl"),
        (["submission", "hub", str(run), "-o", str(run / "run.json")], "must end in .yaml or .yml"),
        (["report", str(run), "-o", page, "--csv", str(run / "predictions.jsonl")], "must end in .csv"),
        (["report", str(run), "-o", page, "--latex", str(run / "run.json")], "must end in .tex"),
        (["data", "show", str(bench), "1", "--html", str(run / "run.json")], "must end in .html"),
        (["board", "backup", "--store", str(board), "-o", str(board)], "must end in .zip"),
        (["board", "backup", "--store", str(board), "-o", str(run / "ledger.sqlite")], "must end in .zip"),
        (["export", str(run), "--format", "vllm-batch", "-o", str(run / "run.json")], owned),
    ):
        held = {path: path.read_bytes() for path in (*run.iterdir(), *bench.glob("*.jsonl"), board) if path.is_file()}
        assert run_command(words) == 2, words
        assert told in capsys.readouterr().err, words
        assert {path: path.read_bytes() for path in held} == held, words
    # What a command wrote itself is written again, in a run's folder too.
    for _ in range(2):
        assert run_command(["report", str(run), "-o", str(run / "report.html"), "--csv", str(run / "t.csv")]) == 0
