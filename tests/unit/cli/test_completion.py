"""Completion in the shell, and the man page: by what the commands say of themselves."""

import re
import shutil
import subprocess

import click
import pytest

from medthink.cli import COMPLETE_VARIABLE
from medthink.cli.command import run_command
from medthink.cli.shell.completion import answer_shell
from medthink.cli.shell.manual import all_commands, manual


@pytest.fixture
def complete(monkeypatch, capsys, tmp_path):
    """What bash is told for a line whose last word is being typed; in a folder with runs."""
    monkeypatch.chdir(tmp_path)
    for name in ("runs/a", "runs/b", "sweep/c", "mine"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.json").touch()
    (tmp_path / "sweep/sweep.json").touch()
    (tmp_path / "runs/notes").mkdir()
    monkeypatch.setenv(COMPLETE_VARIABLE, "bash_complete")

    def ask(line):
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        assert answer_shell() == 0
        return capsys.readouterr().out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("medthink report ru", ["runs/a", "runs/b"]),
        ("medthink report runs/b", ["runs/b"]),
        ("medthink status s", ["sweep"]),
        ("medthink status sweep/", ["sweep/c"]),
        ("medthink judge runs/a --against m", ["mine"]),
        ("medthink run bench -o runs/", ["runs/a", "runs/b"]),
        ("medthink run bench -t d", ["discussion"]),
        ("medthink run bench -m replay/m", ["replay/mine"]),
        ("medthink run bench --split v", ["validation"]),
        ("medthink rep", ["report"]),
    ],
)
def test_what_is_completed(complete, line, told):
    assert [one.removeprefix("plain,") for one in complete(line)] == told


def test_models_are_those_of_the_price_lists_and_the_baselines(complete):
    assert "plain,openai/gpt-5.2" in complete("medthink run bench -m openai/gpt-5")
    assert "plain,baseline/retrieval" in complete("medthink judge runs/a -j baseline/")


def test_where_no_run_is_any_file_is_completed(complete):
    assert complete("medthink report x") == ["file,x"]


def test_every_command_and_flag_is_in_the_manual(capsys):
    assert run_command(["help", "--man"]) == 0
    page = capsys.readouterr().out
    assert page == manual()
    plain = page.replace(r"\-", "-")
    for name, command in all_commands().items():
        assert f".SS {name}" in plain
        shown = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
        assert all(name in plain for param in shown for name in (*param.opts, *param.secondary_opts))


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_is_valid_roff():
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"], input=manual(), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    # A bold letter is printed twice, over itself.
    assert "--max-usd USD" in re.sub(".\\x08", "", done.stdout)
