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
