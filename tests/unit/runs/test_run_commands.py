"""`medthink run` and `medthink merge` as a person calls them."""

import json
import os

import pytest

from medthink.cli.door import enter


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


@pytest.mark.parametrize("flag", ["--show-prompts", "--dry-run"])
def test_an_unknown_case_is_refused_where_nothing_is_sent_too(benchmark, capsys, flag):
    assert enter(["run", str(benchmark), "--model", "baseline/random", flag, "--cases", "100,999"]) == 2
    assert "no such case in the split test: 999" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--max-tokens", "9" * 20], ["--shard", f"{'9' * 20}/{'9' * 20}"]])
def test_what_no_manifest_can_hold_is_refused(benchmark, tmp_path, capsys, words):
    assert enter(["run", str(benchmark), "--model", "baseline/random", "--out", str(tmp_path / "run"), *words]) == 2
    assert "run.json cannot hold what is asked" in capsys.readouterr().err


def test_a_path_that_is_no_unicode_is_refused(benchmark, tmp_path, capsys):
    odd = benchmark.rename(tmp_path / os.fsdecode(b"bench\xff"))
    assert enter(["run", str(odd), "--model", "baseline/random", "--out", str(tmp_path / "run")]) == 2
    assert "run.json cannot hold what is asked" in capsys.readouterr().err


def test_prompts_of_an_empty_shard_are_refused(benchmark, capsys):
    empty = next(number for number in range(1, 100) if not _cases_in(benchmark, number, capsys))
    words = ["run", str(benchmark), "--model", "baseline/random", "--show-prompts", "--shard", f"{empty}/99"]
    assert enter(words) == 2
    assert "no case is in this part" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("baseline/longest", ["--temperature", "0"]),
        ("baseline/random", ["--effort", "none"]),
        ("baseline/retrieval", ["--max-tokens", "9"]),
        ("baseline/majority", ["--model-seed", "0"]),
        ("anthropic/m", ["--max-tokens", "9", "--model-seed", "0"]),
        ("openai/m", ["--model-seed", "0"]),
    ],
)
def test_what_a_model_does_not_take_is_refused_by_the_run_and_by_its_estimate(
    benchmark, tmp_path, capsys, monkeypatch, model, words
):
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "sk-0123456789")
    command = ["run", str(benchmark), "--model", model, *words]
    assert enter([*command, "--dry-run"]) == 3
    assert f"leave out {words[-2]}" in capsys.readouterr().err
    assert enter([*command, "--out", str(tmp_path / "run")]) == 3
    made = (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()
    assert len(made) == 12
    assert all(json.loads(line)["state"] == "failed" and f"leave out {words[-2]}" in line for line in made)


def test_a_model_seed_chooses_among_random_draws(benchmark, tmp_path):
    def letters(name, *words):
        command = ["run", str(benchmark), "--model", "baseline/random", "--out", str(tmp_path / name), *words]
        assert enter(command) == 0
        lines = (tmp_path / name / "predictions.jsonl").read_text().splitlines()
        return [json.loads(line)["prediction"] for line in lines]

    plain, seeded = letters("plain", "--samples", "2"), letters("seeded", "--model-seed", "1")
    assert letters("again", "--model-seed", "1") == seeded == plain[1::2]
    assert seeded != plain[::2] == letters("shown", "--seed", "1")


def _cases_in(benchmark, number, capsys) -> int:
    words = ["run", str(benchmark), "--model", "baseline/random", "--dry-run", "--json", "--shard", f"{number}/99"]
    assert enter(words) == 0
    return json.loads(capsys.readouterr().out)["cases"]


def test_the_status_needs_no_benchmark_once_a_session_has_ended(benchmark, tmp_path, capsys):
    assert enter(["run", str(benchmark), "--model", "baseline/random", "--out", str(tmp_path / "run")]) == 0
    benchmark.rename(tmp_path / "moved")
    capsys.readouterr()
    assert enter(["run", "--status", str(tmp_path / "run")]) == 0
    assert "12 of 12 done: 12 ok" in capsys.readouterr().out


def test_a_table_says_why_calls_failed(benchmark, tmp_path, capsys):
    first, again = str(tmp_path / "first"), str(tmp_path / "again")
    assert enter(["run", str(benchmark), "--model", "baseline/random", "--out", first, "--limit", "10"]) == 0
    assert enter(["run", str(benchmark), "--model", f"replay/{first}", "--out", again]) == 0
    shown = capsys.readouterr().out
    assert "2 × unsupported: the replayed run never asked this answer prompt" in shown
    assert "the same command tries them again" in shown


@pytest.mark.parametrize("word", ["run", "replay"])
def test_a_ledger_that_is_none_is_refused(benchmark, tmp_path, capsys, word):
    run = tmp_path / "run"
    assert enter(["run", str(benchmark), "--model", "baseline/random", "--out", str(run)]) == 0
    (run / "ledger.sqlite").write_bytes(b"garbage" * 1000)
    words = {
        "run": ["run", "--status", str(run)],
        "replay": ["run", str(benchmark), "--model", f"replay/{run}", "--out", str(tmp_path / "again")],
    }
    assert enter(words[word]) == 2
    assert "the ledger cannot be read: file is not a database" in capsys.readouterr().err
