"""Commands over a store: looking for one never makes one."""

import pytest

from medthink.cli.command import run_command
from medthink.store.engine import Store, store_url

LOOKING = [
    ("board", "list"),
    ("board", "build", "-o", "site"),
    ("board", "backup", "-o", "backup.zip"),
    ("board", "withdraw", "token", "--reason", "a reason"),
    ("accounts", "list"),
    ("accounts", "edit", "ann", "--disable"),
]


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_a_command_that_looks_makes_no_store(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_command([*words]) == 2
    said = capsys.readouterr().err
    assert "no store at board.sqlite" in said and "--store" in said
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_tables_is_no_store(new_address, capsys):
    assert run_command(["board", "list", "--store", new_address]) == 2
    assert "no store at" in capsys.readouterr().err


def test_an_empty_store_is_not_backed_up(tmp_path, capsys):
    place = tmp_path / "board.sqlite"
    Store(store_url(place)).close()
    assert run_command(["board", "backup", "-o", str(tmp_path / "b.zip"), "--store", str(place)]) == 1
    assert "is empty" in capsys.readouterr().err
    assert not (tmp_path / "b.zip").exists()
