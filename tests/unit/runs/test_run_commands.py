"""`medthink run` and `medthink merge` as a person calls them."""

import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from medthink.cli.command import run_command
from medthink.core.digest import digest_bytes
from medthink.core.errors import UsageError
from medthink.models.limits import Backoff
from medthink.runs.selection import Selection, Shard


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


@pytest.mark.parametrize("flag", ["--show-prompts", "--dry-run"])
def test_an_unknown_case_is_refused_where_nothing_is_sent_too(benchmark, capsys, flag):
    assert run_command(["run", str(benchmark), "--model", "baseline/random", flag, "--cases", "100,999"]) == 2
    assert "no such case in the split test: 999" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--limit", "9" * 20], ["--shard", f"{'9' * 20}/{'9' * 20}"]])
def test_what_no_manifest_can_hold_is_refused(benchmark, tmp_path, capsys, words):
    assert (
        run_command(["run", str(benchmark), "--model", "baseline/random", "--out", str(tmp_path / "run"), *words]) == 2
    )
    assert "run.json cannot store these settings" in capsys.readouterr().err


def test_a_path_that_is_no_unicode_is_refused(benchmark, tmp_path, capsys):
    odd = benchmark.rename(tmp_path / os.fsdecode(b"bench\xff"))
    assert run_command(["run", str(odd), "--model", "baseline/random", "--out", str(tmp_path / "run")]) == 2
    assert "run.json cannot store these settings" in capsys.readouterr().err


def test_prompts_of_an_empty_shard_are_refused(benchmark, capsys):
    empty = next(number for number in range(1, 100) if not _cases_in(benchmark, number, capsys))
    words = ["run", str(benchmark), "--model", "baseline/random", "--show-prompts", "--shard", f"{empty}/99"]
    assert run_command(words) == 2
    assert "this shard contains no cases" in capsys.readouterr().err


@pytest.mark.parametrize("provider", ["openai", "openai-chat", "anthropic", "google"])
def test_what_sends_nothing_needs_no_key(benchmark, tmp_path, capsys, monkeypatch, provider):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    words = ["run", str(benchmark), "--model", f"{provider}/m", "--max-tokens", "99", "--out", str(tmp_path / "run")]
    assert run_command([*words, "--dry-run"]) == run_command([*words, "--show-prompts"]) == 0
    assert "12" in capsys.readouterr().out
    assert run_command(words) == 2
    assert "needs a key" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_dry_run_says_what_is_left_and_what_is_done(benchmark, tmp_path, capsys):
    words = ["run", str(benchmark), "--model", "baseline/random", "--out", str(tmp_path / "run")]
    assert run_command([*words, "--max-calls", "5"]) == 1
    capsys.readouterr()
    assert run_command([*words, "--dry-run"]) == 0
    shown = [re.split("  +", line.strip()) for line in capsys.readouterr().out.splitlines()]
    rows = {words[0]: words[-1] for words in shown}
    assert rows["already done"] == "5 of 12 predictions: 5 ok; 5 calls; cost $0.00"
    assert (rows["cases left"], rows["calls left"]) == ("7", "7")


def test_requests_that_differ_by_their_image_alone_are_shown_once_with_every_image(benchmark, capsys):
    words = ["run", str(benchmark), "--model", "baseline/random", "--task", "twi", "--show-prompts", "--cases", "100"]
    assert run_command([*words, "--temperature", "0.5", "--max-side", "9000"]) == 0
    shown = capsys.readouterr().out
    digests = [digest_bytes(path.read_bytes())[:12] for path in sorted((benchmark / "images/case00100").iterdir())]
    steps = shown.split("──── ")[1:]
    assert [step.split(" ─")[0] for step in steps] == ["findings · for each of 2 images", "summary", "differential"]
    for step in steps:
        assert re.findall(r"SHA-256 (\w+)…", step) == digests
        assert "[settings] temperature 0.5" in step and "[schema " in step


def test_samples_that_are_asked_the_same_are_shown_once_and_others_apart(benchmark, capsys):
    words = ["run", str(benchmark), "--model", "baseline/random", "--show-prompts", "--samples", "2"]
    assert run_command(words) == 0
    assert capsys.readouterr().out.count("──── answer · 2 times ─") == 1
    assert run_command([*words, "--model-seed", "4"]) == 0
    assert re.findall(r"──── answer ─|seed \d", capsys.readouterr().out) == [
        "──── answer ─",
        "seed 4",
        "──── answer ─",
        "seed 5",
    ]


def test_a_dry_run_counts_what_failed_as_left(benchmark, tmp_path, capsys):
    first, again = str(tmp_path / "first"), str(tmp_path / "again")
    assert run_command(["run", str(benchmark), "--model", "baseline/random", "--out", first, "--limit", "10"]) == 0
    words = ["run", str(benchmark), "--model", f"replay/{first}", "--out", again]
    assert run_command(words) == 4
    capsys.readouterr()
    assert run_command([*words, "--dry-run"]) == 0
    assert "10 of 12 predictions: 10 ok; 10 calls;" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "missing"),
    [([], "DATA, --model"), (["bench"], "--model"), (["bench", "--dry-run"], "--model")],
)
def test_all_that_is_missing_is_named_at_once(capsys, words, missing):
    assert run_command(["run", *words]) == 2
    assert f"missing: {missing}\n" in capsys.readouterr().err


FLAGS = [
    (["--image-share", "40%"], {"image_share": 0.4}),
    (["--image-choice", "spread"], {"image_choice": "spread"}),
    (["--image-order", "reversed"], {"image_order": "reversed"}),
    (["--swap-images"], {"swap_images": True}),
    (["--hide-history"], {"show_history": False}),
    (["--hide-options"], {"show_options": False}),
    (["--option-order", "3"], {"option_order": 3}),
    (["--option-order", "seeded"], {"option_order": "seeded"}),
    (["--findings", "expert"], {"findings": "expert"}),
    (["--summary", "none"], {"summary": "none"}),
    (["--single-call"], {"single_call": True}),
    (["--prompt-set", "brief"], {"prompt_set": "brief"}),
    (["--no-schema"], {"use_schema": False}),
    (["--max-side", "512"], {"image_max_side": 512}),
    (["--max-bytes", "9999"], {"image_max_bytes": 9999}),
    (["--effort", "xhigh"], {"effort": "xhigh"}),
    (["--temperature", "0"], {"temperature": 0.0}),
    (["--max-tokens", "77"], {"max_tokens": 77}),
    (["--samples", "3"], {"samples": 3}),
    (["--seed", "4"], {"seed": 4}),
    (["--model-seed", "0"], {"model_seed": 0}),
    (["--split", "train"], {"selection": Selection(split="train")}),
    (["--limit", "4"], {"selection": Selection(split="test", limit=4)}),
    (["--cases", "9,7"], {"selection": Selection(split="test", cases=(7, 9))}),
    (["--shard", "2/3"], {"selection": Selection(split="test", shard=Shard(2, 3))}),
    (["--max-usd", "1.5"], {"max_usd": 1.5}),
    (["--max-calls", "0"], {"max_calls": 0}),
    (["--prices", "mine.toml"], {"prices": Path("mine.toml")}),
    (["--base-url", "http://a", "--base-url", "http://b"], {"base_urls": ("http://a", "http://b")}),
    (["--concurrency", "3"], {"concurrency": 3}),
    (["--max-wait", "5"], {"backoff": Backoff(patience_s=5.0)}),
    (["--no-preflight"], {"preflight": False}),
    (["--rpm", "60"], {"requests_per_minute": 60}),
    (["--tpm", "600"], {"tokens_per_minute": 600}),
    (["--timeout", "7"], {"timeout_s": 7.0}),
]


@pytest.mark.parametrize(("words", "changes"), FLAGS)
def test_every_flag_changes_what_it_says_and_nothing_else(monkeypatch, tmp_path, words, changes):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('date = "2026-01-01"\n[models]\n')

    def told(*more):
        """All that a session is told, each field by its name."""
        heard = {}

        def listen(order, *, transport, listener, rule):
            for one in (order, order.condition, transport, transport.pace):
                heard.update(msgspec.structs.asdict(one))
            raise UsageError("heard")

        monkeypatch.setattr("medthink.runs.session.run_session", listen)
        command = ["run", "bench", "--model", "server/m", "--task", "twi", "--out", str(tmp_path), *more]
        assert run_command(command) == 2
        # The plan says the same in other words.
        return {name: value for name, value in heard.items() if name not in ("condition", "pace", "plan")}

    assert told(*words) == told() | changes


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
    assert run_command([*command, "--dry-run"]) == 2
    assert f"leave out {words[-2]}" in capsys.readouterr().err
    assert run_command([*command, "--out", str(tmp_path / "run")]) == 2
    assert f"leave out {words[-2]}" in capsys.readouterr().err
    assert not (tmp_path / "run").exists(), "nothing was asked, and nothing is recorded as failed"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--task", "discussion"], "writes no discussion"),
        (["--hide-options"], "chooses among options and none are shown"),
    ],
)
@pytest.mark.parametrize("name", ["random", "majority", "longest", "guesser", "guesser:images"])
def test_what_a_baseline_cannot_do_is_refused_at_the_start(benchmark, tmp_path, capsys, name, words, problem):
    command = ["run", str(benchmark), "--model", f"baseline/{name}", "--out", str(tmp_path / "run"), *words]
    assert run_command(command) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_model_seed_chooses_among_random_draws(benchmark, tmp_path):
    def letters(name, *words):
        command = ["run", str(benchmark), "--model", "baseline/random", "--out", str(tmp_path / name), *words]
        assert run_command(command) == 0
        lines = (tmp_path / name / "predictions.jsonl").read_text().splitlines()
        return [json.loads(line)["prediction"] for line in lines]

    plain, seeded = letters("plain", "--samples", "2"), letters("seeded", "--model-seed", "1")
    assert letters("again", "--model-seed", "1") == seeded == plain[1::2]
    assert seeded != plain[::2] == letters("shown", "--seed", "1")


def _cases_in(benchmark, number, capsys) -> int:
    words = ["run", str(benchmark), "--model", "baseline/random", "--dry-run", "--json", "--shard", f"{number}/99"]
    assert run_command(words) == 0
    return json.loads(capsys.readouterr().out)["cases"]


def test_the_status_needs_no_benchmark_once_a_session_has_ended(benchmark, tmp_path, capsys):
    assert run_command(["run", str(benchmark), "--model", "baseline/random", "--out", str(tmp_path / "run")]) == 0
    benchmark.rename(tmp_path / "moved")
    capsys.readouterr()
    assert run_command(["status", str(tmp_path / "run")]) == 0
    assert "12 of 12 done: 12 ok" in capsys.readouterr().out


def test_a_table_says_why_calls_failed(benchmark, tmp_path, capsys):
    first, again = str(tmp_path / "first"), str(tmp_path / "again")
    assert run_command(["run", str(benchmark), "--model", "baseline/random", "--out", first, "--limit", "10"]) == 0
    assert run_command(["run", str(benchmark), "--model", f"replay/{first}", "--out", again]) == 4
    shown = capsys.readouterr().out
    assert "2 × unsupported: the replayed run did not send this answer prompt" in shown
    assert "the same command retries them" in shown


@pytest.mark.parametrize("word", ["run", "replay"])
def test_a_ledger_that_is_none_is_refused(benchmark, tmp_path, capsys, word):
    run = tmp_path / "run"
    assert run_command(["run", str(benchmark), "--model", "baseline/random", "--out", str(run)]) == 0
    (run / "ledger.sqlite").write_bytes(b"garbage" * 1000)
    words = {
        "run": ["status", str(run)],
        "replay": ["run", str(benchmark), "--model", f"replay/{run}", "--out", str(tmp_path / "again")],
    }
    assert run_command(words[word]) == 2
    assert "the ledger is damaged: file is not a database" in capsys.readouterr().err
