import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from medthink.core.errors import DataError
from medthink.core.files import new_folder, open_for_reading, write_atomic


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a/b/c.txt"
    write_atomic(path, [b"one", b"two"])
    assert path.read_bytes() == b"onetwo"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("interruption", [ValueError("no"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, interruption: BaseException) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def chunks() -> Iterator[bytes]:
        yield b"new"
        raise interruption

    with pytest.raises(type(interruption)):
        write_atomic(path, chunks())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "a.txt", [b""])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_the_umask_of_the_process_stays_what_it_was(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "a", [b""])
    finally:
        after = os.umask(before)
    assert after == 0o027


def test_what_cannot_be_written_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be written"):
        write_atomic(tmp_path / "file/below.txt", [b""])
    (tmp_path / "folder/full").mkdir(parents=True)
    with pytest.raises(DataError, match="cannot be written"):
        write_atomic(tmp_path / "folder", [b""])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_what_is_no_regular_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(DataError, match="not a regular file"):
            write_atomic(tmp_path / name, [b"x"])
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/file")
    write_atomic(tmp_path / "link", [b"x"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far/file").read_bytes() == b"x"


def test_a_folder_that_may_not_be_looked_into_is_a_data_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(DataError, match="cannot be written: Permission denied"), new_folder(tmp_path / "out"):
        pass
    with pytest.raises(DataError, match="cannot be written: Permission denied"):
        write_atomic(tmp_path / "file", [b""])


def test_the_bytes_are_on_the_disk_before_the_name_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def note_sync(handle: int) -> None:
        found = os.fstat(handle)
        steps.append("sync folder" if stat.S_ISDIR(found.st_mode) else f"sync {found.st_size} bytes")
        sync(handle)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", lambda self, to: (steps.append("rename"), replace(self, to))[1])
    write_atomic(tmp_path / "a.txt", [b"abc", b"de"])
    assert steps == ["sync 5 bytes", "rename", "sync folder"]


def fill_the_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_a_data_error_and_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fill_the_disk)
    with pytest.raises(DataError, match=r"a.txt: cannot be written: No space left on device\n.*free space"):
        write_atomic(tmp_path / "a.txt", [b"new"])
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.txt", b"old")]


def test_a_full_disk_leaves_no_new_folder(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match=r"out: cannot be written: No space left on device"),
        new_folder(tmp_path / "out") as folder,
    ):
        (folder / "a").write_bytes(b"1")
        fill_the_disk()
    assert list(tmp_path.iterdir()) == []


def test_a_new_folder_takes_the_place_of_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with new_folder(tmp_path / "out") as folder:
        (folder / "a").write_bytes(b"1")
    assert (tmp_path / "out/a").read_bytes() == b"1"


def test_reading_errors_are_data_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="no such file"):
        open_for_reading(tmp_path / "none")
    with pytest.raises(DataError, match="this is a folder"):
        open_for_reading(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="Not a directory"):
        open_for_reading(tmp_path / "file/below")


def test_a_new_folder_takes_its_name_when_all_is_written(tmp_path):
    with new_folder(tmp_path / "made" / "out") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "made" / "out").exists()
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["out"]
    assert (tmp_path / "made" / "out" / "a").read_text() == "1"


def test_a_new_folder_is_gone_when_anything_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("1")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_new_folder_never_takes_the_place_of_something(tmp_path):
    (tmp_path / "a").write_text("precious")
    with pytest.raises(DataError, match="the folder is not empty"), new_folder(tmp_path):
        pass
