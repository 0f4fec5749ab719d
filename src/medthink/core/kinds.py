"""Recognise by its first bytes a file that is not what its name says."""

from pathlib import Path

from medthink.core.errors import DataError

_START_BYTES = 64
_KNOWN_STARTS = (
    ((b"\xff\xfe", b"\xfe\xff"), "the file is UTF-16 text", "save it as UTF-8"),
    ((b"\x1f\x8b",), "the file is compressed (gzip)", "unpack it first"),
    ((b"PK\x03\x04",), "the file is a zip archive", "unpack it first"),
    ((b"PAR1",), "the file is parquet", "give its name the ending .parquet"),
    ((b"version https://git-lfs",), "the file is a Git LFS pointer, not the data", "fetch the data with: git lfs pull"),
    ((b"<!doctype", b"<html", b"<?xml"), "the file is a web page", "download the data itself, not its page"),
)
# A file named .zip or .parquet is expected to be one.
_ENDINGS = {b"PK\x03\x04": ".zip", b"PAR1": ".parquet"}


def refuse_known_start(raw: bytes, *, file: Path) -> None:
    """Raise DataError that says what the file is if its first bytes show it."""
    start = raw[:_START_BYTES].strip().lower()
    for starts, problem, remedy in _KNOWN_STARTS:
        if file.suffix != _ENDINGS.get(starts[0]) and start.startswith(tuple(one.lower() for one in starts)):
            raise DataError(problem, file=file, remedy=remedy)


def refuse_other_kind(file: Path) -> None:
    """Raise DataError for a file that could not be read as what its name says, if its first bytes show what it is."""
    try:
        with file.open("rb") as stream:
            start = stream.read(_START_BYTES)
    except OSError:
        return  # the caller reports what is wrong with it
    refuse_known_start(start, file=file)
