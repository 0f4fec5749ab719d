"""The stores of a benchmark's images, the only code that opens them.

A path comes from someone else's file, so it is checked before anything is opened: nothing but the benchmark's
`images/`, its `images.zip` or its parquet files is ever read, and no image may be larger than the limit.
"""

import os
import re
import stat
import struct
import threading
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from medthink.cases.images.fact_cache import Stamp, StampedStore, stamp_of
from medthink.core.errors import DataError
from medthink.core.files import refuse_other_kind

# The path is resolved, so a link found now was put there since; NONBLOCK keeps a pipe from hanging. Not on Windows.
_READ_ONLY = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
MAX_IMAGE_BYTES = 64 * 1024 * 1024
MAX_ZIP_RATIO = 100
FOLDER = "images"
MISSING = "no such image"

_MAX_PATH_CHARS = 1024
_MAX_NAME_BYTES = 255
_RATIO_IS_HARMLESS_BELOW = 1024 * 1024
_PLAIN = re.compile(rf"{FOLDER}(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*+)++")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\\\ud800-\udfff]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_LEAVES = "the path leads outside the benchmark's folder"
LINKS_OUT = f"a symbolic link leads out of {FOLDER}/"


def path_problem(path: str) -> str:
    """Why this path may not be opened, whatever is there, or "" if it may."""
    # Nearly every path is of this form, which none of the reasons below fits; it is asked for every image.
    if len(path) <= _MAX_NAME_BYTES and _PLAIN.fullmatch(path):
        return ""
    if not path:
        return "the path is empty"
    if _UNPRINTABLE.search(path):
        return "the path contains a backslash, a control character or invalid Unicode"
    if len(path) > _MAX_PATH_CHARS or any(len(part.encode()) > _MAX_NAME_BYTES for part in path.split("/")):
        return "the path is too long"
    if _SCHEME.match(path):
        return "the path is an address, not a file of the benchmark"
    if path.startswith(("/", "~")) or any(part in ("", ".", "..") for part in path.split("/")):
        return _LEAVES
    if not path.startswith(f"{FOLDER}/"):
        # Else a row could name `test.jsonl`, and the answers would be read as a picture.
        return f"the path does not start with {FOLDER}/"
    return ""


def list_by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    """The paths as a store lists them: by folder, sorted in each; those that may not be opened under ""."""
    listed: dict[str, list[str]] = {}
    for path in sorted(paths):
        folder = "" if path_problem(path) else path.rpartition("/")[0]
        listed.setdefault(folder, []).append(path)
    return listed


class NoImages(StampedStore):
    """The store of a benchmark without images."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def place(self) -> str:
        """The benchmark's folder."""
        return str(self.root)

    def stamp(self, path: str) -> Stamp:  # noqa: ARG002
        """No stamp."""
        return ()

    def read_stamped(self, path: str) -> tuple[bytes, Stamp]:
        """Always DataError: there is nothing to read."""
        raise refusal(path_problem(path) or MISSING, self.root, path, remedy=f"put {FOLDER}/ or {FOLDER}.zip there")

    def problem(self, path: str) -> str:
        """Why the image cannot be read."""
        return path_problem(path) or MISSING

    def listing(self) -> dict[str, list[str]]:
        """Nothing."""
        return {}

    def __str__(self) -> str:
        return "no images"


class FolderImages(StampedStore):
    """Images as files below `images/` of a root folder.

    A symbolic link may only lead to another file below `images/`: else a row could have the answers read as a picture.
    The hub keeps its downloads as links from `snapshots/REVISION/` to `blobs/`; those are followed too.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._real_root = os.path.realpath(root)
        self._inside = _places_for_images(root, self._real_root)
        self._follows_links = len(self._inside) > 1
        self._last_folder = ("", "")
        self._last_above = ("", self._real_root)

    @property
    def place(self) -> str:
        """The real path of the folder, links resolved."""
        return f"{self._real_root}/{FOLDER}"

    def stamp(self, path: str) -> Stamp:
        """The file's stamp."""
        _, problem, found = self._locate(path)
        return () if problem or found is None else stamp_of(found)

    def read_stamped(self, path: str) -> tuple[bytes, Stamp]:
        """The file's bytes, or DataError, and its stamp."""
        real, problem, _ = self._locate(path)
        if problem:
            raise refusal(problem, self.root, path)
        try:
            return self._read_regular(real, path)
        except OSError as error:
            raise refusal(f"cannot be read: {error.strerror}", self.root, path) from None

    def problem(self, path: str) -> str:
        """Why the image cannot be read, or "" when it can."""
        return self._locate(path)[1]

    def listing(self) -> dict[str, list[str]]:
        """Every regular file below `images/`, by folder; links are left out, so that all are inside."""
        listed: dict[str, list[str]] = {}
        waiting = [FOLDER] if self._is_inside(os.path.realpath(self.root / FOLDER) + "/") else []
        while waiting:
            folder = waiting.pop()
            files, folders = self._list(folder)
            paths = [f"{folder}/{name}" for name in sorted(files)]
            # A name that may not be opened is rare; all names joined to one path have the problem that any of them has.
            if path_problem("/".join([folder, *files])):
                for name, found in list_by_folder(paths).items():
                    listed.setdefault(name, []).extend(found)
            elif paths:
                listed[folder] = paths
            waiting += [f"{folder}/{name}" for name in folders]
        return listed

    def _list(self, folder: str) -> tuple[list[str], list[str]]:
        """The names of the files and of the folders in a folder, hidden ones left out."""
        files: list[str] = []
        folders: list[str] = []
        try:
            with os.scandir(f"{self._real_root}/{folder}") as found:
                for entry in found:
                    if entry.name[0] == ".":
                        continue
                    if entry.is_file(follow_symlinks=self._follows_links):
                        files.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
        except OSError:
            return [], []  # a folder that cannot be listed: each image in it has its own problem
        return files, folders

    def _locate(self, path: str) -> tuple[str, str, os.stat_result | None]:
        """The real path of an image, why it may not be read, and its file status."""
        if problem := path_problem(path):
            return "", problem, None
        # Strings and not pathlib: this runs once per image, and is ten times faster.
        folder, _, name = path.rpartition("/")
        real = f"{self._resolve_folder(folder)}/{name}"
        found: os.stat_result | None = None
        try:
            found = os.lstat(real)
            if stat.S_ISLNK(found.st_mode):
                real = os.path.realpath(real)
                found = os.lstat(real)
        except (OSError, ValueError):
            found = None
        if not self._is_inside(real):
            return "", f"{LINKS_OUT}: {self._outermost_link(path)!r}", None
        return real, "" if found is not None and stat.S_ISREG(found.st_mode) else MISSING, found

    def _outermost_link(self, path: str) -> str:
        """The first part of a path that leads out: of a whole folder elsewhere, the folder."""
        parts = path.split("/")
        heads = ["/".join(parts[:length]) for length in range(1, len(parts))]
        return next((head for head in heads if not self._is_inside(os.path.realpath(self.root / head) + "/")), path)

    def _is_inside(self, real: str) -> bool:
        return real.startswith(self._inside)

    def _resolve_folder(self, folder: str) -> str:
        """The folder's real path; requests come in order, so the last one is cached."""
        known, real = self._last_folder
        if folder != known:
            above, _, name = folder.rpartition("/")
            place = f"{self._resolve_above(above)}/{name}"
            real = os.path.realpath(place) if os.path.islink(place) else place  # noqa: PTH114
            self._last_folder = (folder, real)
        return real

    def _resolve_above(self, folder: str) -> str:
        known, real = self._last_above
        if folder != known:
            real = os.path.realpath(os.path.join(self._real_root, folder))  # noqa: PTH118
            self._last_above = (folder, real)
        return real

    def _read_regular(self, real: str, path: str) -> tuple[bytes, Stamp]:
        handle = os.open(real, _READ_ONLY)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise refusal("not a regular file", self.root, path)
            if found.st_size > MAX_IMAGE_BYTES:
                raise too_large(self.root, path)
            data = os.read(handle, found.st_size)
            stamp = stamp_of(os.fstat(handle))  # after reading: whoever wrote meanwhile has changed it
        finally:
            os.close(handle)
        if len(data) != found.st_size:
            raise refusal("truncated while it was read", self.root, path)
        return data, stamp

    def __str__(self) -> str:
        return f"{FOLDER}/"


def _places_for_images(root: Path, real_root: str) -> tuple[str, ...]:
    """The real folders that images may be in: `images/`, and the hub's `blobs/` for a snapshot in its cache."""
    places: tuple[str, ...] = (f"{real_root}/{FOLDER}/",)
    if root.absolute().parent.name == "snapshots" and root.absolute().parent.parent.name.startswith("datasets--"):
        places += (os.path.join(os.path.realpath(root.absolute().parent.parent), "blobs", ""),)  # noqa: PTH118
    return places


class ZipImages(StampedStore):
    """Images inside a zip, read one by one and never unpacked; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._opened: tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return ZipImages, (self.path,)

    @property
    def place(self) -> str:
        """The real path of the zip, links resolved."""
        return os.path.realpath(self.path)

    def stamp(self, path: str) -> Stamp:
        """The zip's stamp, and the checksum it has for the member."""
        archive, members = self._open()
        stamp = stamp_of(os.fstat(archive.fp.fileno())) if archive.fp is not None else ()
        return (*stamp, members[path].CRC) if stamp and path in members else ()

    def read_stamped(self, path: str) -> tuple[bytes, Stamp]:
        """The member's bytes, or DataError; a bomb is refused by its declared size before it is unpacked."""
        archive, members = self._open()
        if problem := self.problem(path):
            raise refusal(problem, self.path, path)
        member = members[path]
        _refuse_bomb(member, self.path, path)
        try:
            with archive.open(member) as stream:
                data = stream.read(MAX_IMAGE_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError) as error:
            # RuntimeError: encrypted; NotImplementedError (its child): an unknown compression.
            raise refusal(f"cannot be unpacked: {error}", self.path, path) from None
        if len(data) > MAX_IMAGE_BYTES:
            raise too_large(self.path, path)
        return data, self.stamp(path)

    def problem(self, path: str) -> str:
        """Why the image cannot be read, or "" when it can."""
        return path_problem(path) or ("" if path in self._open()[1] else MISSING)

    def listing(self) -> dict[str, list[str]]:
        """Every file in the zip, by folder, as a path that starts with `images/`."""
        return list_by_folder(self._open()[1])

    def _open(self) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
        with self._lock:
            if self._opened is None:
                self._opened = self._read_directory()
            return self._opened

    def _read_directory(self) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
        try:
            archive = zipfile.ZipFile(self.path)
        except FileNotFoundError:
            raise DataError("no such file", file=self.path, remedy="check the path") from None
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            refuse_other_kind(self.path)
            raise DataError(
                f"cannot be read as a zip: {error}", file=self.path, remedy="download it again; it may be truncated"
            ) from None
        return archive, {
            _canonical(member.filename): member for member in archive.infolist() if _is_wanted(member.filename)
        }

    def __str__(self) -> str:
        return self.path.name


def _canonical(name: str) -> str:
    """A zip may hold `images/caseNNNNN/…` or start at `caseNNNNN/…`; the rows always say `images/…`.

    A name that may not be opened is left unchanged.
    """
    inside = name if name.startswith(f"{FOLDER}/") else f"{FOLDER}/{name}"
    return name if path_problem(inside) else inside


def _is_wanted(name: str) -> bool:
    """Whether a member is a file, and not a file manager's leftover."""
    last = name.rpartition("/")[2]
    return bool(last) and not last.startswith(".") and not name.startswith("__MACOSX/")


def _refuse_bomb(member: zipfile.ZipInfo, file: Path, path: str) -> None:
    if member.file_size > MAX_IMAGE_BYTES:
        raise too_large(file, path)
    is_large = member.file_size > _RATIO_IS_HARMLESS_BELOW
    if is_large and member.file_size > MAX_ZIP_RATIO * max(member.compress_size, 1):
        raise refusal(f"unpacks to more than {MAX_ZIP_RATIO} times its size, which no image does", file, path)


def too_large(file: Path, path: str) -> DataError:
    """The error for an image over the size limit."""
    return refusal(f"larger than {MAX_IMAGE_BYTES // 1024 // 1024} MB", file, path)


def refusal(problem: str, file: Path, path: str, *, remedy: str = "") -> DataError:
    """The error for an image that is not read; its path, made safe to print, says where and not what is wrong."""
    shown = path if len(path) <= 120 else path[:117] + "..."
    remedy = remedy or "medthink data check lists every such image"
    return DataError(problem, file=file, field=ascii(shown), remedy=remedy)
