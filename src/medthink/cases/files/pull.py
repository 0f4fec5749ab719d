"""Download the released benchmark from the Hugging Face hub, resuming interrupted downloads.

The hub's library lists the files and transfers the bytes. It discards an interrupted file, which is not acceptable for
a zip of six gigabytes; partial files are therefore kept here, and every file is checked against the hub's digest before
it is renamed.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

import msgspec

from medthink.cases.files.layout import split_files
from medthink.cases.images.stores import FOLDER, path_problem
from medthink.core.clock import now_utc
from medthink.core.errors import DataError, MedThinkError, OutsideError, UsageError
from medthink.core.files import claim_folder
from medthink.core.jsonio import write_json

if TYPE_CHECKING:
    from huggingface_hub import HfApi

REPOSITORY = "bio-nlp-umass/MedThinkVQA"
REVISION = "main"
LICENCE = "CC BY-NC-SA 4.0: research and education only, no clinical use"
RECORD = ".medthink-pull.json"

_PARTS = ".medthink-parts"
_WORKERS = 8
_CHUNK_BYTES = 1024 * 1024
_REMEDY = "check the network, then run the same command again: it continues where it stopped"


class HubFile(msgspec.Struct, frozen=True):
    """One file of the hub's snapshot: large ones are known by their SHA-256, small ones by their git blob id."""

    path: str
    size: int
    digest: str
    digest_of: Literal["content", "git blob"]


class Snapshot(msgspec.Struct, frozen=True):
    """The files of the repository at one commit that a benchmark needs."""

    repository: str
    commit: str
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        """All bytes together."""
        return sum(file.size for file in self.files)


OnBytes = Callable[[int], None]


def find_snapshot(revision: str = REVISION, *, repository: str = REPOSITORY) -> Snapshot:
    """Ask the hub what the repository holds at this branch, tag or commit."""
    with _speaking_to_hub(revision), _understanding_hub():
        api = _hub()
        commit = str(api.repo_info(repository, repo_type="dataset", revision=revision).sha)
        tree = list(api.list_repo_tree(repository, repo_type="dataset", revision=commit, recursive=True))
    files = [_hub_file(entry) for entry in tree if hasattr(entry, "blob_id")]
    return Snapshot(repository, commit, tuple(_wanted(files)))


def pull_snapshot(snapshot: Snapshot, out: Path, *, progress: OnBytes | None = None) -> None:
    """Download what is missing into `out`; `progress` is called with the bytes gained, or lost again."""
    _refuse_other_splits(snapshot, out)
    claim_folder(out, holds_more=True)
    stopped = threading.Event()

    def fetch(file: HubFile) -> None:
        if not stopped.is_set():
            _fetch(file, snapshot, out, _Meter(progress or (lambda _: None), stopped))

    with ThreadPoolExecutor(_WORKERS) as pool:
        jobs = [pool.submit(fetch, file) for file in snapshot.files]
        try:
            for job in as_completed(jobs):
                job.result()
        finally:
            # After an error or Ctrl-C the other downloads keep what they have and end.
            stopped.set()
    _remove_parts(out)
    record = {"repository": snapshot.repository, "commit": snapshot.commit, "licence": LICENCE, "pulled_at": now_utc()}
    write_json(out / RECORD, record)


class _Stopped(MedThinkError):
    """Another download failed."""


class _Meter:
    """Counts the bytes of one download and stops it when another has failed."""

    def __init__(self, progress: OnBytes, stopped: threading.Event) -> None:
        self._progress = progress
        self._stopped = stopped

    def count(self, size: int) -> None:
        if self._stopped.is_set():
            raise _Stopped("stopped")
        self._progress(size)


class _MeteredFile:
    """A file that tells its meter what is written to it, and what is thrown away."""

    def __init__(self, stream: BinaryIO, meter: _Meter) -> None:
        self._stream = stream
        self._meter = meter

    def write(self, data: bytes) -> int:
        self._meter.count(len(data))
        return self._stream.write(data)

    def truncate(self) -> int:
        end = self._stream.seek(0, os.SEEK_CUR)
        self._meter.count(end - self._stream.seek(0, os.SEEK_END))
        self._stream.seek(end)
        return self._stream.truncate()

    def seek(self, offset: int) -> int:
        return self._stream.seek(offset)

    def tell(self) -> int:
        return self._stream.tell()


def _hub() -> "HfApi":
    # Read by the hub's library when it is imported: no usage reports, and no bars beside ours.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from huggingface_hub import HfApi

    return HfApi(endpoint=os.environ.get("HF_ENDPOINT"))


@contextmanager
def _speaking_to_hub(revision: str, *, writing: Path | None = None) -> Iterator[None]:
    """Translate errors of the hub's library, and of the disk while a file is written, into ours."""
    # The HTTP library differs between versions of the hub's library; its error class is the one found here.
    from huggingface_hub.errors import HTTPError, RevisionNotFoundError  # type: ignore[attr-defined]

    try:
        yield
    except RevisionNotFoundError:
        raise UsageError(f"the hub has no revision {revision!r}", remedy="name a branch, tag or full commit") from None
    except (HTTPError, OSError) as error:
        if writing is not None and isinstance(error, OSError) and error.errno:
            remedy = "free some space or choose another folder; the same command continues where it stopped"
            raise DataError(f"cannot be written: {error.strerror}", file=writing, remedy=remedy) from None
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise OutsideError(f"the hub failed: {first_line[:200]}", remedy=_REMEDY) from None


@contextmanager
def _understanding_hub() -> Iterator[None]:
    """Translate the library's error for a server or reply that is not the hub's into ours."""
    try:
        yield
    except (ValueError, KeyError, TypeError):
        remedy = "check HF_ENDPOINT, and whether the network redirects to a login page"
        raise OutsideError("the server that answered is not the hub", remedy=remedy) from None


def _hub_file(entry: Any) -> HubFile:
    if problem := path_problem(f"{FOLDER}/{entry.path}"):
        raise OutsideError(f"the hub lists a file that may not be written, {problem}: {entry.path!a}")
    if entry.lfs is not None:
        return HubFile(entry.path, entry.lfs.size, entry.lfs.sha256, "content")
    return HubFile(entry.path, entry.size, entry.blob_id, "git blob")


def _wanted(files: list[HubFile]) -> list[HubFile]:
    """Leave out git's own files, and the single images if the zip contains them all."""
    has_zip = any(file.path == f"{FOLDER}.zip" for file in files)
    kept = (file for file in files if not file.path.startswith("."))
    return [file for file in kept if not (has_zip and file.path.startswith(f"{FOLDER}/"))]


def _refuse_other_splits(snapshot: Snapshot, out: Path) -> None:
    """Refuse a folder with splits of something else: they would be read as this release, some in its splits' stead."""
    ours = {file.path for file in snapshot.files}
    others = [path for path in split_files(out) if path.name not in ours] if out.is_dir() else []
    if others:
        raise DataError(
            "not a file of this revision", file=others[0], remedy="pull into another folder, or move the file away"
        )


def _fetch(file: HubFile, snapshot: Snapshot, out: Path, meter: _Meter) -> None:
    """Download one file, unless it already exists."""
    target = out / file.path
    if target.is_file() and target.stat().st_size == file.size and _digest(target, file) == file.digest:
        meter.count(file.size)
        return
    # Named by its digest, so that the part of another revision's file is never continued.
    part = out / _PARTS / f"{file.digest}.part"
    with _speaking_to_hub(snapshot.commit, writing=target):
        part.parent.mkdir(parents=True, exist_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        _download(file, snapshot, part, meter)
        if _digest(part, file) != file.digest:
            part.unlink()
            raise OutsideError(f"{file.path} was damaged during download", remedy="run the same command again")
        part.replace(target)


def _download(file: HubFile, snapshot: Snapshot, part: Path, meter: _Meter) -> None:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    endpoint = os.environ.get("HF_ENDPOINT")
    url = hf_hub_url(snapshot.repository, file.path, repo_type="dataset", revision=snapshot.commit, endpoint=endpoint)
    if part.exists() and part.stat().st_size > file.size:
        part.unlink()
    with part.open("ab") as stream:
        meter.count(stream.tell())
        sink = cast(BinaryIO, _MeteredFile(stream, meter))
        http_get(url, sink, resume_size=stream.tell(), headers=build_hf_headers(), expected_size=file.size)


def _digest(path: Path, file: HubFile) -> str:
    # Git names a blob by SHA-1 of a short header and the content.
    digest = hashlib.sha256() if file.digest_of == "content" else hashlib.sha1(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _remove_parts(out: Path) -> None:
    parts = out / _PARTS
    if parts.is_dir():
        for part in parts.iterdir():
            part.unlink()
        parts.rmdir()
