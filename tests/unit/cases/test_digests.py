"""Digests of unchanged images are remembered, those of changed ones never, whichever store they are in."""

import os
import sqlite3
import threading
import zipfile
from pathlib import Path

import pytest

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Image
from medthink.cases.files.export import export_benchmark
from medthink.cases.images import fact_cache
from medthink.cases.images.embedded import ParquetImages
from medthink.cases.images.fact_cache import CachingImageStore, FactTable, ImageFacts, find_facts
from medthink.cases.images.jpeg import Size
from medthink.cases.images.stores import FolderImages, ZipImages
from medthink.core.digest import digest_bytes
from small_benchmark import write_benchmark

PATH = "images/case00100/i100x1.jpg"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """A cache of its own, and files that are remembered at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(fact_cache, "SETTLED_NS", 0)
    return tmp_path / "cache/medthink/digests"


@pytest.fixture
def bench(tmp_path) -> Path:
    return write_benchmark(tmp_path / "bench", cases=3)


@pytest.fixture
def read(monkeypatch) -> list[str]:
    """The images that are read, in order."""
    seen: list[str] = []
    for store in (FolderImages, ZipImages, ParquetImages):
        original = store.read_stamped

        def read_stamped(self, path, original=original):
            seen.append(path)
            return original(self, path)

        monkeypatch.setattr(store, "read_stamped", read_stamped)
    return seen


def fingerprint(bench: Path, **options) -> str:
    return Benchmark.open(bench).remembering(**options)["test"].fingerprint()


def as_zip(bench: Path) -> Path:
    with zipfile.ZipFile(bench / "images.zip", "w") as archive:
        for file in sorted((bench / "images").rglob("*.jpg")):
            archive.write(file, file.relative_to(bench).as_posix())
            file.unlink()
    for folder in sorted((bench / "images").rglob("*"), reverse=True):
        folder.rmdir()
    (bench / "images").rmdir()
    return bench


def as_parquet(bench: Path) -> Path:
    export_benchmark(Benchmark.open(bench), bench.parent / "parquet", format="parquet")
    return bench.parent / "parquet"


@pytest.mark.parametrize("form", [lambda bench: bench, as_zip, as_parquet])
def test_what_is_unchanged_is_read_once_for_all_sessions(bench, read, form):
    bench = form(bench)
    plain = Benchmark.open(bench)["test"].fingerprint()
    read.clear()
    assert fingerprint(bench) == plain and len(read) == 6
    read.clear()
    assert fingerprint(bench) == plain and not read
    assert fingerprint(bench, rehash=True) == plain and len(read) == 6


def rewrite(file: Path, *, keep_inode: bool) -> None:
    """Other bytes of the same size, with the same time of change."""
    before = file.stat()
    data = bytearray(file.read_bytes())
    data[-3] ^= 0xFF
    if keep_inode:
        file.write_bytes(bytes(data))
    else:
        other = file.with_suffix(".new")
        other.write_bytes(bytes(data))
        other.replace(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.mark.parametrize("keep_inode", [True, False])
def test_a_file_that_looks_alike_and_is_not_is_read_again(bench, read, keep_inode):
    before = fingerprint(bench)
    rewrite(bench / PATH, keep_inode=keep_inode)
    read.clear()
    assert fingerprint(bench) != before
    assert read == [PATH]
    assert fingerprint(bench) == Benchmark.open(bench)["test"].fingerprint()


def test_a_zip_that_was_written_anew_is_read_again(bench, read):
    before = fingerprint(as_zip(bench))
    with zipfile.ZipFile(bench / "images.zip", "a") as archive:
        archive.writestr("images/case00100/more.jpg", b"more")
    read.clear()
    assert fingerprint(bench) == before
    assert len(read) == 6


def test_what_was_changed_just_now_is_not_remembered(bench, read, monkeypatch):
    monkeypatch.setattr(fact_cache, "SETTLED_NS", 60_000_000_000)
    fingerprint(bench)
    read.clear()
    fingerprint(bench)
    assert len(read) == 6


def kept(cache: Path) -> dict[str, str]:
    """What is remembered, by path."""
    (file,) = cache.iterdir()
    table = sqlite3.connect(file)
    try:
        return dict(table.execute("SELECT path, digest FROM facts"))
    finally:
        table.close()


def test_a_memory_is_trusted_until_it_is_told_not_to(bench, cache):
    true = fingerprint(bench)
    (file,) = cache.iterdir()
    with sqlite3.connect(file) as table:
        table.execute("UPDATE facts SET digest = ? WHERE path = ?", ("0" * 64, PATH))
    table.close()
    assert fingerprint(bench) != true
    assert fingerprint(bench, rehash=True) == true
    assert fingerprint(bench) == true, "what was hashed anew is remembered instead"


@pytest.mark.parametrize("content", [b"", b"no table", b"SQLite format 3\x00" + b"?" * 4096])
def test_a_damaged_memory_is_made_anew(bench, cache, content):
    true = fingerprint(bench)
    (file,) = cache.iterdir()
    file.write_bytes(content)
    assert fingerprint(bench) == true
    assert PATH in kept(cache)


def test_a_memory_that_is_damaged_inside_costs_time_alone(bench, cache, read):
    true = fingerprint(bench)
    (file,) = cache.iterdir()
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    assert fingerprint(bench) == true
    read.clear()
    assert fingerprint(bench) == fingerprint(bench) == true
    assert len(read) == 6, "and the next session makes it anew"


def test_a_memory_that_is_in_use_elsewhere_is_left_alone(bench, cache, monkeypatch):
    true = fingerprint(bench)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *words, **more: connect(*words, **more, timeout=0))
    (file,) = cache.iterdir()
    other = connect(file)
    other.execute("BEGIN IMMEDIATE")
    assert fingerprint(bench, rehash=True) == true
    other.rollback()
    other.close()
    assert PATH in kept(cache)


def test_only_a_stretch_of_what_is_remembered_is_in_memory(tmp_path):
    file, stamp = tmp_path / "digests.sqlite", (1, 2, 3)
    table = FactTable(file, is_new=False)
    for number in range(6000):
        table.keep(f"{number}.jpg", stamp, ImageFacts(f"digest {number}", Size(number, 7) if number % 2 else None))
        assert len(table._unwritten) <= 1024
    table.save()
    again = FactTable(file, is_new=False)
    for number in [*range(6000), 17, 5999, 0]:
        assert again.find(f"{number}.jpg", stamp) == (f"digest {number}", (number, 7) if number % 2 else None)
        assert len(again._at_hand) <= 2304
    assert again.find("6000.jpg", stamp) is None
    assert again.find("17.jpg", (1, 2, 4)) is None


def test_another_release_looks_for_itself(bench, read, monkeypatch):
    fingerprint(bench)
    monkeypatch.setattr(fact_cache, "_RELEASE", b"another")
    read.clear()
    fingerprint(bench)
    assert len(read) == 6


def test_what_is_remembered_of_an_image_is_what_its_bytes_say(bench):
    first, again = ([image.read_known() for image in images(bench)] for _ in range(2))
    assert first == again == [(data, find_facts(data)) for data, _ in first]
    assert {facts.plain_size is None for _, facts in first} == {False}


def images(bench: Path) -> list[Image]:
    return [image for case in Benchmark.open(bench).remembering()["test"] for image in case.question.images]


def test_threads_share_a_memory(tmp_path):
    table = FactTable(tmp_path / "digests.sqlite", is_new=False)
    wrong: list[str] = []

    def work(name: str) -> None:
        for number in range(1500):
            table.keep(f"{name}{number}", (1,), ImageFacts(f"{name}{number}", None))
            if table.find(f"{name}{number // 2}", (1,)) != (f"{name}{number // 2}", None):
                wrong.append(f"{name}{number}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_cache_that_cannot_be_written_costs_time_alone(bench, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert fingerprint(bench) == fingerprint(bench)


def test_bytes_come_with_their_own_digest_whatever_is_remembered(bench):
    store = CachingImageStore(FolderImages(bench))
    store.digest(PATH)
    rewrite(bench / PATH, keep_inode=True)
    data, known = store.read_known(PATH)
    assert known.digest == digest_bytes(data) == digest_bytes((bench / PATH).read_bytes())


def test_the_memories_of_two_benchmarks_are_two(bench, tmp_path, cache):
    fingerprint(bench)
    fingerprint(write_benchmark(tmp_path / "other", cases=3))
    assert len(list(cache.iterdir())) == 2


def test_an_image_that_cannot_be_read_counts_as_missing_and_a_broken_zip_is_told(bench, tmp_path):
    from medthink.core.errors import DataError

    whole = fingerprint(bench)
    (bench / PATH).write_bytes(b"")
    with (bench / PATH).open("wb") as stream:
        stream.truncate(65 * 1024 * 1024)
    found = []
    Benchmark.open(bench)["test"].pass_prints(lambda case, made: found.append(made.missing_images)).finish()
    assert found == [1, 0, 0]
    assert fingerprint(bench) != whole
    zipped = as_zip(write_benchmark(tmp_path / "zipped", cases=2))
    (zipped / "images.zip").write_bytes(b"PK no zip")
    with pytest.raises(DataError, match="zip"):
        fingerprint(zipped)
