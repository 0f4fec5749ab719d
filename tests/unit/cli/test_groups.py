"""A command is a group or an action; a word that is both a subcommand and a file here is refused, never guessed."""

import pytest

from medthink.cli.command import load_command, run_command
from small_benchmark import write_benchmark


def test_the_words_of_audit_are_those_of_its_first_subcommand(tmp_path, capsys):
    bench = write_benchmark(tmp_path / "bench", cases=2)
    codes = [run_command(["audit", *words, str(bench), "--split", "none"]) for words in ([], ["shortcuts"])]
    first, second = capsys.readouterr().err.strip().split("medthink: ")[1:]
    assert codes == [2, 2]
    assert first.strip() == second.strip()


@pytest.mark.parametrize("words", [["contamination"], ["contamination", "--json"]])
def test_a_folder_named_like_a_subcommand_is_not_mistaken_for_it(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contamination").mkdir()
    assert run_command(["audit", *words]) == 2
    assert "write ./contamination" in capsys.readouterr().err


def test_a_run_may_have_the_name_of_any_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bench = write_benchmark(tmp_path / "bench", cases=2)
    for name in ("exam", "lists"):
        assert run_command(["run", str(bench), "--model", "baseline/random", "--task", "twi", "--out", name]) == 0
        assert run_command(["judge", name, "--judge", "baseline/rules"]) == 0
    assert (tmp_path / "exam" / "judgements.jsonl").is_file()


def test_the_subcommands_of_a_group_are_listed_in_its_help(capsys):
    assert run_command(["audit", "-h"]) == 0
    shown = capsys.readouterr().out
    assert "shortcuts" in shown and "contamination" in shown
    assert load_command("reading").list_commands(None) == ["lists", "training", "mark", "export"]


def test_words_to_search_models_by_are_never_mistaken_for_files_or_subcommands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("prices", "list", "claude"):
        (tmp_path / name).mkdir()
    asked = ([], ["claude"], ["list", "claude"], ["prices"], ["list", "prices"])
    codes = [run_command(["models", *words, "--json"] if words else ["models"]) for words in asked]
    assert codes == [0, 0, 0, 0, 2], "a file's name changes nothing"
    assert "no known model is named like prices" in capsys.readouterr().err
