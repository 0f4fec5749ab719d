"""Results kept on disk by digest: found again, and never in the way."""

import sqlite3

import pytest

from medthink.cases.images.result_cache import ResultCache
from medthink.core.files import cache_folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_what_is_kept_is_found_by_another_instance_of_the_same_kind_alone():
    ResultCache("one").keep({f"{number:064x}": bytes([number]) for number in range(200)} | {"x": b""})
    keys = [f"{number:064x}" for number in range(300)]
    assert ResultCache("one").find([*keys, "x"]) == {key: bytes([n]) for n, key in enumerate(keys[:200])} | {"x": b""}
    assert ResultCache("two").find(keys) == {}


def test_a_result_that_is_kept_again_replaces_the_first():
    for value in (b"1", b"2"):
        ResultCache("one").keep({"a": value})
    assert ResultCache("one").find(["a"]) == {"a": b"2"}


def test_a_damaged_table_is_replaced():
    ResultCache("one").keep({"a": b"1"})
    (file,) = (cache_folder() / "images").glob("one-*.sqlite")
    file.write_bytes(b"not a table" * 100)
    assert ResultCache("one").find(["a"]) == {}
    ResultCache("one").keep({"a": b"1"})
    ResultCache("one").keep({"a": b"1"})
    assert ResultCache("one").find(["a"]) == {"a": b"1"}


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    ResultCache("one").keep({"a": b"1"})
    assert ResultCache("one").find(["a"]) == {}


def test_a_table_in_use_is_left_alone(monkeypatch):
    monkeypatch.setattr("medthink.cases.images.result_cache._PATIENCE_S", 0)
    cache = ResultCache("one")
    cache.keep({"a": b"1"})
    (file,) = (cache_folder() / "images").glob("one-*.sqlite")
    writing = sqlite3.connect(file)
    writing.execute("BEGIN IMMEDIATE")
    cache.keep({"b": b"2"})
    writing.close()
    assert cache.find(["a", "b"]) == {"a": b"1"}
