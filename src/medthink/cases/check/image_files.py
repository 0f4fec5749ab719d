"""Checks of image files: those that the slots name, compared with those that exist."""

import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from medthink.cases.case import Case, Image, ImageStore
from medthink.cases.check.report import DataProblem, FoundDefect, locate
from medthink.cases.images.jpeg import JPEG_SIGNATURE
from medthink.cases.images.result_cache import ResultCache
from medthink.cases.images.similarity import ImageAppearance, appearance, look_alikes
from medthink.cases.images.stores import LINKS_OUT, MISSING, path_problem
from medthink.core.digest import digest_bytes, digest_value
from medthink.core.errors import DataError
from medthink.core.plugins import Made, Portion, PortionRunner

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage


class _Folder(NamedTuple):
    """The files of a folder that no slot has named yet, and those that one has."""

    unclaimed: set[str]
    claimed: set[str]


class ImageFileList:
    """Crosses off each listed file as a slot claims it; the files left at the end belong to no slot.

    Listing once is ten times faster than asking for each file; the store is asked only about what is not listed. Nearly
    every folder holds the files of one case and nothing else, and is struck out as a whole.
    """

    def __init__(self, store: ImageStore) -> None:
        self._store = store
        self._untouched = store.listing()
        self._struck_out: dict[str, list[str]] = {}
        self._others: dict[str, _Folder] = {}

    def check(self, case: Case) -> list[FoundDefect]:
        """Missing, unsafe and repeated files of a case."""
        images = case.question.images
        paths = sorted([image.path for image in images])
        folder = _folder_of(paths[0]) if paths else ""
        # What is listed under no folder may not be opened.
        if folder and self._untouched.get(folder) == paths:
            self._struck_out[folder] = self._untouched.pop(folder)
            return []
        return [finding for image in images if (finding := self._claim(image)) is not None]

    def extras(self) -> Iterator[FoundDefect]:
        """The files that no slot named."""
        unclaimed = [*self._untouched.values(), *[folder.unclaimed for folder in self._others.values()]]
        for path in sorted(chain(*unclaimed)):
            # A file's name need not be Unicode, but what is reported must be.
            shown = path.encode(errors="backslashreplace").decode()
            if problem := path_problem(path):
                yield FoundDefect("image-path-unsafe", shown, f"{problem}; no slot names it")
            else:
                yield FoundDefect("image-file-extra", shown, "no slot names it")

    def _claim(self, image: Image) -> FoundDefect | None:
        """Strike out the image's file alone; what is wrong with it, if anything."""
        path, field = image.path, f"image_{image.slot:02d}_path"
        is_safe = not path_problem(path)
        folder = self._open(_folder_of(path) if is_safe else "")
        if path in folder.unclaimed:
            folder.unclaimed.remove(path)
            folder.claimed.add(path)
            if is_safe:
                return None
        shown = ascii(path[:120])
        if path in folder.claimed and is_safe:
            return FoundDefect("image-path-repeated", field, f"{shown} is named by an earlier slot")
        problem = self._store.problem(path)
        if not problem:
            return None
        if problem.startswith(LINKS_OUT):
            return FoundDefect("image-path-unsafe", field, problem)  # which names the link: it may be a folder's
        code = "image-file-missing" if problem == MISSING else "image-path-unsafe"
        return FoundDefect(code, field, f"{problem}: {shown}")

    def _open(self, name: str) -> _Folder:
        if name not in self._others:
            claimed = self._struck_out.pop(name, [])
            self._others[name] = _Folder(set(self._untouched.pop(name, [])), set(claimed))
        return self._others[name]


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


_KIND = "checks"
_CHUNK = 16
_PORTION = 128  # worth the way to another machine
_FEW = 32  # done before another process has started
_SMALLEST_SIDE = 8
_START_OF_SCAN = b"\xff\xda"
# Compressed pictures have no such stretch; a copy that lost a block of its file has.
_ZEROS = bytes(512)
_MEMORY_LIMIT = 4 * 1024**3


class FilledSlot(NamedTuple):
    """One filled image slot, as small as it can be sent to a worker."""

    split: str
    case: int
    slot: int
    path: str

    @property
    def field(self) -> str:
        """The column that names the file."""
        return f"image_{self.slot:02d}_path"


class ImageFileCheck(NamedTuple):
    """The result of checking one file; no digest if there was no picture, no appearance without contrast."""

    findings: tuple[FoundDefect, ...]
    digest: str | None
    appearance: ImageAppearance | None = None


def slots_of(case: Case) -> list[FilledSlot]:
    """The case's images as slots."""
    return [FilledSlot(case.split, case.id, image.slot, image.path) for image in case.question.images]


def check_pixels(
    looks: Iterable[tuple[FilledSlot, ImageFileCheck]], *, advance: Callable[[], None]
) -> Iterator[DataProblem]:
    """Problems from the checks of all files: format, alpha, size, completeness, metadata, and duplicate pictures."""
    seen: dict[str, list[FilledSlot]] = {}
    shown: list[tuple[FilledSlot, ImageFileCheck]] = []
    for slot, looked in looks:
        advance()
        for finding in looked.findings:
            yield locate(finding, split=slot.split, case=slot.case)
        if looked.digest is not None:
            earlier = seen.setdefault(looked.digest, [])
            if earlier:
                yield locate(_duplicate(slot, earlier), split=slot.split, case=slot.case)
            earlier.append(slot)
        if looked.appearance is not None:
            shown.append((slot, looked))
    yield from _find_look_alikes(shown)


def _find_look_alikes(shown: list[tuple[FilledSlot, ImageFileCheck]]) -> Iterator[DataProblem]:
    """Pictures of different cases that look the same without being equal: only a footer or the compression differs."""
    told: set[FilledSlot] = set()
    for first, second in look_alikes([looked.appearance for _, looked in shown if looked.appearance is not None]):
        (other, seen), (slot, looked) = shown[first], shown[second]
        if slot.case != other.case and looked.digest != seen.digest and slot not in told:
            told.add(slot)
            detail = f"looks like {other.split} case {other.case}, slot {other.slot:02d}: {other.path}"
            yield locate(FoundDefect("image-look-alike", slot.field, detail), split=slot.split, case=slot.case)


def check_image_file(data: bytes, slot: FilledSlot) -> ImageFileCheck:
    """Judge one file's bytes."""
    from medthink.cases.images import content
    from medthink.cases.images.colour_profile import MalformedImage, TruncatedImage
    from medthink.cases.images.content import without_metadata

    media_type = content.sniff(data)
    if media_type not in content.EXTENSIONS:
        return _lost(slot, "image-format-refused", media_type or "unknown content")
    findings = []
    suffix = PurePosixPath(slot.path).suffix.lower()
    if suffix not in content.EXTENSIONS[media_type]:
        findings.append(FoundDefect("image-format-differs", slot.field, f"{media_type} inside {slot.path}"))
    broken: MalformedImage | None = None
    try:
        if without_metadata(data) is not data:
            findings.append(FoundDefect("image-metadata", slot.field, slot.path))
    except MalformedImage as error:
        broken = error
    try:
        picture = content.decode(data, name=slot.path)
    except content.TooLarge as error:
        return _lost(slot, "image-too-large", error.problem)
    except DataError as error:
        return _lost(
            slot, "image-truncated" if isinstance(broken, TruncatedImage) else "image-undecodable", error.problem
        )
    if broken is not None:
        # The picture shows, but what follows it, or hides in it, was not looked at.
        return _lost(slot, "image-truncated", broken.problem)
    findings += _doubts(picture, data, slot)
    return ImageFileCheck(tuple(findings), content.pixel_digest(picture), appearance(picture))


def _doubts(picture: "PillowImage", data: bytes, slot: FilledSlot) -> Iterator[FoundDefect]:
    """Problems of a picture that can be decoded."""
    from medthink.cases.images import content

    if content.is_transparent(picture):
        yield FoundDefect("image-alpha", slot.field, f"mode {picture.mode} in {slot.path}")
    if min(picture.size) < _SMALLEST_SIDE:
        yield FoundDefect("image-tiny", slot.field, f"{picture.width} × {picture.height} pixels: {slot.path}")
    elif content.is_one_colour(picture):
        yield FoundDefect("image-blank", slot.field, slot.path)
    scan = data.find(_START_OF_SCAN) if data.startswith(JPEG_SIGNATURE) else -1
    if scan >= 0 and data.find(_ZEROS, scan) >= 0:
        yield FoundDefect("image-zeroed", slot.field, f"{len(_ZEROS)} zero bytes in a row: {slot.path}")


def _lost(slot: FilledSlot, code: str, detail: str) -> ImageFileCheck:
    return ImageFileCheck((FoundDefect(code, slot.field, f"{detail}: {slot.path}"),), None)


def _duplicate(slot: FilledSlot, earlier: list[FilledSlot]) -> FoundDefect:
    """The gravest way in which this picture repeats an earlier one."""
    kinds: tuple[tuple[str, Callable[[FilledSlot], bool]], ...] = (
        ("image-duplicate-across-splits", lambda other: other.split != slot.split),
        ("image-duplicate-in-case", lambda other: other.case == slot.case),
        ("image-duplicate-across-cases", lambda other: True),  # noqa: ARG005
    )
    for code, is_kind in kinds:
        other = next(filter(is_kind, earlier), None)
        if other is not None:
            where = f"{other.split} case {other.case}, slot {other.slot:02d}"
            return FoundDefect(code, slot.field, f"same pixels as {where}: {other.path}")
    raise AssertionError("the last kind takes every slot")


def check_image_files(
    slots: list[FilledSlot], store: ImageStore, spread: PortionRunner | None = None
) -> Iterator[tuple[FilledSlot, ImageFileCheck]]:
    """Check every file in the order of the slots, with `spread` if given, else on all cores if there are many."""
    if spread is None and len(slots) <= _FEW:
        yield from zip(slots, _look_at_all(store, slots), strict=True)
        return
    size = _CHUNK if spread is None else _PORTION
    chunks = [slots[start : start + size] for start in range(0, len(slots), size)]
    look_at_chunk = partial(_look_at_chunk, pickle.dumps(store))
    for chunk, looks in zip(chunks, (spread or _spread_on_cores)(look_at_chunk, chunks), strict=True):
        yield from zip(chunk, looks, strict=True)


def _spread_on_cores(work: Callable[[Portion], Made], portions: Iterable[Portion]) -> Iterator[Made]:
    workers = os.cpu_count() or 1
    # Not fork: the progress display runs a thread, and a forked child would inherit its locks.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _limit_memory) as pool:
        try:
            yield from pool.map(work, portions)
        except BrokenProcessPool:
            raise DataError(
                "a process that decoded images died",
                remedy="check that there is enough memory, close other programs and run the command again",
            ) from None


def _limit_memory() -> None:
    """Limit the memory against decompression bombs, where the system supports it."""
    if find_spec("resource") is None:  # Windows
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, resource.getrlimit(resource.RLIMIT_AS)[1]))


@lru_cache(maxsize=1)
def _unpack(store: bytes) -> ImageStore:
    """The store, opened once per process: a zip's directory is long."""
    opened: ImageStore = pickle.loads(store)
    return opened


def _look_at_chunk(store: bytes, chunk: Iterable[FilledSlot]) -> list[ImageFileCheck]:
    return _look_at_all(_unpack(store), list(chunk))


def _look_at_all(store: ImageStore, slots: Sequence[FilledSlot]) -> list[ImageFileCheck]:
    """The checks of these files; those kept on disk from an earlier session are not made again."""
    cache = ResultCache(_KIND)
    keys = [_key_of(store, slot) for slot in slots]
    kept = cache.find([key for key in keys if key])
    checks = [
        msgspec.msgpack.decode(kept[key], type=ImageFileCheck) if key in kept else _look_at(store, slot)
        for key, slot in zip(keys, slots, strict=True)
    ]
    cache.keep(
        {key: msgspec.msgpack.encode(check) for key, check in zip(keys, checks, strict=True) if key and key not in kept}
    )
    return checks


def _key_of(store: ImageStore, slot: FilledSlot) -> str:
    """What a check depends on: the bytes, and the slot and path that it names; "" for a file that cannot be read."""
    try:
        data = store.read(slot.path)
    except DataError:
        return ""
    return digest_value([digest_bytes(data), slot.field, slot.path])


def _look_at(store: ImageStore, slot: FilledSlot) -> ImageFileCheck:
    try:
        data = store.read(slot.path)
    except DataError as error:
        return _lost(slot, "image-unreadable", error.problem)
    return check_image_file(data, slot)
