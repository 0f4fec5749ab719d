"""Commands over a store: looking for one never makes one."""

import sqlite3
from contextlib import closing

import pytest

from medthink.cli.command import run_command
from medthink.store.engine import Store, store_url
from small_benchmark import write_benchmark

LOOKING = [
    ("board", "list"),
    ("board", "build", "-o", "site"),
    ("board", "backup", "-o", "backup.zip"),
    ("board", "withdraw", "token", "--reason", "a reason"),
    ("accounts", "list"),
    ("accounts", "edit", "ann", "--disable"),
]

STORING = [("board", "add", "run", "--data", "bench"), ("board", "restore", "b.zip"), ("board", "list")]


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


@pytest.mark.parametrize("kind", ["text", "a database of something else"])
@pytest.mark.parametrize("words", STORING, ids=" ".join)
def test_a_file_that_is_no_store_is_refused_in_words_and_stays(kind, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_benchmark(tmp_path / "bench", cases=2)
    (tmp_path / "run").mkdir()
    (tmp_path / "b.zip").write_bytes(b"")
    place = tmp_path / "other.sqlite"
    if kind == "text":
        place.write_text("These are notes, and no database at all.\n" * 40)
    else:
        with closing(sqlite3.connect(place)) as other, other:
            other.execute("CREATE TABLE attempts (id INTEGER)")
    before = place.read_bytes()
    assert run_command([*words, "--store", "other.sqlite"]) == 2
    said = capsys.readouterr().err
    assert "other.sqlite" in said and "store" in said and "--store" in said and "table attempts" not in said
    if kind == "text":
        assert place.read_bytes() == before
    else:
        with closing(sqlite3.connect(place)) as other:
            assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("attempts",)]
