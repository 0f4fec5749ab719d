"""Files: read with clear errors, written completely or not at all."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from medthink.core.errors import DataError, UsageError

# Lines of a benchmark are longer than Python's own 8 KB: with this, reading them takes a quarter of the time.
_READ_BYTES = 256 * 1024


def open_for_reading(path: Path) -> BinaryIO:
    """Open a file for reading, or raise DataError."""
    try:
        return path.open("rb", buffering=_READ_BYTES)
    except FileNotFoundError:
        raise DataError("no such file", file=path, remedy="check the path") from None
    except IsADirectoryError:
        raise DataError("this is a folder, not a file", file=path, remedy="name the file inside it") from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path, remedy="check its permissions") from None


def write_atomic(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file so that a reader sees either the old or the complete new one."""
    with open_for_writing(path) as stream:
        for chunk in chunks:
            stream.write(chunk)


@contextmanager
def open_for_writing(path: Path) -> Iterator[BinaryIO]:
    """A stream to a temporary file beside `path` that is fsynced and renamed to it when all is written.

    A file that is there keeps its permissions, and a link is followed. A folder, a device or a pipe is refused: the
    rename would put a file in its place.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            raise DataError("cannot be written: not a regular file", file=path, remedy="name another file")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise _cannot_write(path, error) from None
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())
        part.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise _cannot_write(path, error) from None
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to `path` when all is written, and removed if anything fails.

    `path` must not exist, or be an empty folder.
    """
    try:
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise DataError(
                "the folder is not empty", file=path, remedy="name a folder that does not exist or is empty"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        shelter = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part"))
    except OSError as error:
        raise _cannot_write(path, error) from None
    try:
        # The temporary folder is private; the folder inside it has ordinary permissions.
        folder = shelter / "whole"
        folder.mkdir()
        yield folder
        folder.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from None
    finally:
        shutil.rmtree(shelter, ignore_errors=True)


class _Kind(NamedTuple):
    """A kind of folder, and the endings of the files in it that are its own."""

    name: str
    endings: frozenset[str]


_STORED = frozenset({".json", ".jsonl", ".sqlite", ".toml"})
_BENCHMARK = _Kind("a benchmark", frozenset({".jsonl", ".parquet", ".zip"}))
# What shows that a folder holds something of this kind.
_SIGNS = {
    "run.json": _Kind("a run", _STORED),
    "sweep.json": _Kind("a sweep", _STORED),
    "exam.json": _Kind("an exam", _STORED),
    "build.json": _Kind("the work of a curation", _STORED | {".csv"}),
    "leaderboard.json": _Kind("a board's site", _STORED | {".csv", ".html", ".svg"}),
    "how-to-read.txt": _Kind("reading lists", frozenset({".csv", ".xlsx", ".jsonl"})),
    "demo.toml": _Kind("a demo", frozenset({".toml"})),
    **{f"{split}.{form}": _BENCHMARK for split in ("train", "validation", "test") for form in ("jsonl", "parquet")},
}


def claim_folder(folder: Path, sign: str = "", *, holds_more: bool = False, passing: Sequence[str] = ()) -> None:
    """Make the folder that a command works in, or raise UsageError if it contains something else.

    It may be empty, or hold `sign` from an earlier session of the same command; a benchmark has none. With
    `holds_more`, other files may be there too, but never what another command made; files named in `passing` do not
    count.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = {path.name for path in folder.iterdir() if path.name not in (".lock", *passing)}
    except OSError as error:
        raise UsageError(f"{folder}: cannot be created: {error.strerror}", remedy=_ANOTHER) from None
    kind = _SIGNS.get(sign, _BENCHMARK)
    if sign in there:
        return
    other = next((held for name, held in _SIGNS.items() if name in there and held != kind), None)
    if other is not None:
        raise UsageError(f"{folder} holds {other.name}, not {kind.name}", remedy=_ANOTHER)
    if there and not holds_more:
        raise UsageError(f"{folder} is not empty and holds {min(there)}, not {kind.name}", remedy=_ANOTHER)


def claim_file(path: Path) -> None:
    """Raise UsageError if writing this file would replace one that belongs to a run, a benchmark or the like."""
    if not path.is_file():
        return
    there = next((held for name, held in _SIGNS.items() if (path.parent / name).exists()), None)
    if there is not None and path.suffix in there.endings:
        raise UsageError(f"{path} belongs to {there.name}", remedy="name another file")


_ANOTHER = "name another folder"


def _cannot_write(path: Path, error: OSError) -> DataError:
    return DataError(
        f"cannot be written: {error.strerror or error}", file=path, remedy="check the folder and the free space"
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """Make the rename itself durable; Windows cannot open folders, and needs no sync."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """The last part of each path if these are unique, else the full paths; for narrow tables."""
    last = {path: path.rstrip("/").rsplit("/", 1)[-1] for path in paths}
    return last if len(set(last.values())) == len(last) else {path: path for path in paths}


def cache_folder() -> Path:
    """The folder of this user's MedThink caches."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "medthink"


_START_BYTES = 64
_KNOWN_STARTS = (
    ((b"\xff\xfe", b"\xfe\xff"), "the file is UTF-16 text", "save it as UTF-8"),
    ((b"\x1f\x8b",), "the file is compressed (gzip)", "unpack it first"),
    ((b"PK\x03\x04",), "the file is a zip archive", "unpack it first"),
    ((b"PAR1",), "the file is parquet", "rename it to end in .parquet"),
    ((b"version https://git-lfs",), "the file is a Git LFS pointer, not the data", "fetch the data with: git lfs pull"),
    ((b"<!doctype", b"<html", b"<?xml"), "the file is a web page", "download the data itself, not its page"),
)
# A file named .zip or .parquet is expected to be one.
_ENDINGS = {b"PK\x03\x04": ".zip", b"PAR1": ".parquet"}


def refuse_known_start(raw: bytes, *, file: Path) -> None:
    """Raise DataError if the first bytes show what the file is, and say so."""
    start = raw[:_START_BYTES].strip().lower()
    for starts, problem, remedy in _KNOWN_STARTS:
        if file.suffix != _ENDINGS.get(starts[0]) and start.startswith(tuple(one.lower() for one in starts)):
            raise DataError(problem, file=file, remedy=remedy)


def refuse_other_kind(file: Path) -> None:
    """Raise DataError for a file whose content does not match its name, if its first bytes show what it is."""
    try:
        with file.open("rb") as stream:
            start = stream.read(_START_BYTES)
    except OSError:
        return  # the caller reports what is wrong with it
    refuse_known_start(start, file=file)
