"""The content of the image files, looked at by all cores."""

import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from medthink.cases.case import Case, ImageStore
from medthink.cases.check.report import DataProblem, Finding, place
from medthink.cases.metadata import JPEG_SIGNATURE
from medthink.cases.phash import PictureLook, appearance, look_alikes
from medthink.core.errors import DataError
from medthink.core.spreading import Made, Portion, Spread

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

_CHUNK = 16
_PORTION = 128  # worth the way to another machine
_FEW = 32  # done before another process has started
_SMALLEST_SIDE = 8
_START_OF_SCAN = b"\xff\xda"
# Compressed pictures have no such stretch; a copy that lost a block of its file has.
_ZEROS = bytes(512)
_MEMORY_LIMIT = 4 * 1024**3


class Slot(NamedTuple):
    """One filled image slot, as small as it can be sent to a worker."""

    split: str
    case: int
    slot: int
    path: str

    @property
    def field(self) -> str:
        """The column that names the file."""
        return f"image_{self.slot:02d}_path"


class Looked(NamedTuple):
    """What a look at one file showed; no digest when there was no picture, no appearance without contrast."""

    findings: tuple[Finding, ...]
    digest: str | None
    appearance: PictureLook | None = None


def slots_of(case: Case) -> list[Slot]:
    """The case's images as slots."""
    return [Slot(case.split, case.id, image.slot, image.path) for image in case.question.images]


def check_pixels(looks: Iterable[tuple[Slot, Looked]], *, advance: Callable[[], None]) -> Iterator[DataProblem]:
    """What the looks at every file showed: format, alpha, size, wholeness, metadata, and pictures that stand twice."""
    seen: dict[str, list[Slot]] = {}
    shown: list[tuple[Slot, Looked]] = []
    for slot, looked in looks:
        advance()
        for finding in looked.findings:
            yield place(finding, split=slot.split, case=slot.case)
        if looked.digest is not None:
            earlier = seen.setdefault(looked.digest, [])
            if earlier:
                yield place(_duplicate(slot, earlier), split=slot.split, case=slot.case)
            earlier.append(slot)
        if looked.appearance is not None:
            shown.append((slot, looked))
    yield from _find_look_alikes(shown)


def _find_look_alikes(shown: list[tuple[Slot, Looked]]) -> Iterator[DataProblem]:
    """Pictures of different cases that look the same without being equal: a footer or a compression apart."""
    told: set[Slot] = set()
    for first, second in look_alikes([looked.appearance for _, looked in shown if looked.appearance is not None]):
        (other, seen), (slot, looked) = shown[first], shown[second]
        if slot.case != other.case and looked.digest != seen.digest and slot not in told:
            told.add(slot)
            detail = f"looks like {other.split} case {other.case}, slot {other.slot:02d}: {other.path}"
            yield place(Finding("image-look-alike", slot.field, detail), split=slot.split, case=slot.case)


def look(data: bytes, slot: Slot) -> Looked:
    """Judge one file's bytes."""
    from medthink.cases import images
    from medthink.cases.metadata import CutOff, Malformed, without_metadata

    media_type = images.sniff(data)
    if media_type not in images.EXTENSIONS:
        return _lost(slot, "image-format-refused", media_type or "unknown content")
    findings = []
    suffix = PurePosixPath(slot.path).suffix.lower()
    if suffix not in images.EXTENSIONS[media_type]:
        findings.append(Finding("image-format-differs", slot.field, f"{media_type} inside {slot.path}"))
    broken: Malformed | None = None
    try:
        if without_metadata(data) is not data:
            findings.append(Finding("image-metadata", slot.field, slot.path))
    except Malformed as error:
        broken = error
    try:
        picture = images.decode(data, name=slot.path)
    except images.TooLarge as error:
        return _lost(slot, "image-too-large", error.problem)
    except DataError as error:
        return _lost(slot, "image-truncated" if isinstance(broken, CutOff) else "image-undecodable", error.problem)
    if broken is not None:
        # The picture shows, but what follows it, or hides in it, was not looked at.
        return _lost(slot, "image-truncated", broken.problem)
    findings += _doubts(picture, data, slot)
    return Looked(tuple(findings), images.pixel_digest(picture), appearance(picture))


def _doubts(picture: "PillowImage", data: bytes, slot: Slot) -> Iterator[Finding]:
    """What a picture that can be decoded still should not be."""
    from medthink.cases import images

    if images.is_see_through(picture):
        yield Finding("image-alpha", slot.field, f"mode {picture.mode} in {slot.path}")
    if min(picture.size) < _SMALLEST_SIDE:
        yield Finding("image-tiny", slot.field, f"{picture.width} × {picture.height} pixels: {slot.path}")
    elif images.is_one_colour(picture):
        yield Finding("image-blank", slot.field, slot.path)
    scan = data.find(_START_OF_SCAN) if data.startswith(JPEG_SIGNATURE) else -1
    if scan >= 0 and data.find(_ZEROS, scan) >= 0:
        yield Finding("image-zeroed", slot.field, f"{len(_ZEROS)} zero bytes in a row: {slot.path}")


def _lost(slot: Slot, code: str, detail: str) -> Looked:
    return Looked((Finding(code, slot.field, f"{detail}: {slot.path}"),), None)


def _duplicate(slot: Slot, earlier: list[Slot]) -> Finding:
    """The gravest way in which this picture repeats an earlier one."""
    kinds: tuple[tuple[str, Callable[[Slot], bool]], ...] = (
        ("image-duplicate-across-splits", lambda other: other.split != slot.split),
        ("image-duplicate-in-case", lambda other: other.case == slot.case),
        ("image-duplicate-across-cases", lambda other: True),  # noqa: ARG005
    )
    for code, is_kind in kinds:
        other = next(filter(is_kind, earlier), None)
        if other is not None:
            where = f"{other.split} case {other.case}, slot {other.slot:02d}"
            return Finding(code, slot.field, f"same pixels as {where}: {other.path}")
    raise AssertionError("the last kind takes every slot")


def look_at_all(slots: list[Slot], store: ImageStore, spread: Spread | None = None) -> Iterator[tuple[Slot, Looked]]:
    """Look at every file in the order of the slots, by `spread` or, where there are more than a few, on all cores."""
    if spread is None and len(slots) <= _FEW:
        yield from ((slot, _look_at(store, slot)) for slot in slots)
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
                "a process that decoded images died", remedy="is there enough memory? close other programs and repeat"
            ) from None


def _limit_memory() -> None:
    """A ceiling against pictures that unpack without end, where the system sets one."""
    if find_spec("resource") is None:  # Windows
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, resource.getrlimit(resource.RLIMIT_AS)[1]))


@lru_cache(maxsize=1)
def _unpack(store: bytes) -> ImageStore:
    """The store, opened once per process: a zip's directory is long."""
    opened: ImageStore = pickle.loads(store)
    return opened


def _look_at_chunk(store: bytes, chunk: Iterable[Slot]) -> list[Looked]:
    return [_look_at(_unpack(store), slot) for slot in chunk]


def _look_at(store: ImageStore, slot: Slot) -> Looked:
    try:
        data = store.read(slot.path)
    except DataError as error:
        return _lost(slot, "image-unreadable", error.problem)
    return look(data, slot)
