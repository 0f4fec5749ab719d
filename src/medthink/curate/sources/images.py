"""Import of images: found below the source's folder, decoded once, without metadata, named by digest.

A row names files, or folders of them; an empty name is nothing, and the source's own folder, where the images of all
cases lie, belongs to none. In a folder, series of DICOM files follow each other, each in its own order, and files are
in the order in which people count: img2 before img10.
"""

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from medthink.cases.case import MAX_IMAGES
from medthink.cases.images.content import PNG, as_shown, decode, sniff
from medthink.cases.images.similarity import appearance
from medthink.cases.images.stores import MAX_IMAGE_BYTES
from medthink.core.digest import digest_bytes
from medthink.core.errors import DataError
from medthink.core.files import open_for_reading, write_atomic
from medthink.curate.sources.dicom import (
    STACKED,
    GreyWindow,
    evenly,
    read_frames,
    read_header,
    typical_window,
)

_DICOM = "application/dicom"
_ID_CHARS = 16


class ListedImage(NamedTuple):
    """A file or folder named by a row, with the row's data about it."""

    name: str
    caption: str = ""
    modality: str = ""


class ImportedImage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One imported image: its id and path in the benchmark, its header's values, and its perceptual hash."""

    id: str
    path: str
    origin: str
    caption: str = ""
    modality: str = ""
    body_part: str = ""
    view: str = ""
    is_burned_in: bool = False
    phash: str = ""

    def plain(self) -> dict[str, Any]:
        """Plain data for the notes."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class ImageImporter:
    """Imports images of cases from a folder into the work folder."""

    def __init__(self, source: Path, target: Path, *, most: int = MAX_IMAGES, most_frames: int = 1) -> None:
        self._source = Path(os.path.realpath(source))
        self._target = target
        self._most = most
        self._most_frames = most_frames

    def find(self, wanted: list[ListedImage], case_name: str) -> list[ListedImage]:
        """The files of a case: those its row names, with complete folders, else those in the folder named after it."""
        is_plain = bool(case_name) and not case_name.startswith(".") and Path(case_name).name == case_name
        if not wanted and is_plain and (self._source / case_name).is_dir():
            wanted = [ListedImage(case_name)]
        return [one._replace(name=file) for one in wanted for file in self._open_folder(one.name)]

    def take(self, number: int, wanted: list[ListedImage]) -> list[ImportedImage]:
        """The images of a case, written to the work folder without repeats; DataError if one cannot be used."""
        windows = self._windows(wanted)
        pictures = [picture for one in wanted for picture in self._pictures(one, windows.get(one.name))]
        chosen = [pictures[at] for at in evenly(len(pictures), self._most)]
        return list({image.id: image for image in (self._write(number, *one) for one in chosen)}.values())

    def _open_folder(self, name: str) -> list[str]:
        path = self._locate(name)
        if not path.is_dir():
            return [name]
        if path == self._source:
            problem = "this is the folder of all images, not of one case"
            raise DataError(problem, file=name or ".", remedy="name the case's own files or folder")
        inside = [file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".")]
        return sorted((str(file.relative_to(self._source)) for file in inside), key=self._place)

    def _place(self, file: str) -> tuple[Any, ...]:
        """A file's position among those of its folder: by folder, series, position in the series, name."""
        data = self._read(file)
        header = read_header(data, name=file) if sniff(data) == _DICOM else None
        folder, _, name = file.rpartition(os.sep)
        series = (0, "", 0) if header is None else (*header.series, header.instance)
        return (_counted(folder), series, _counted(name))

    def _windows(self, wanted: list[ListedImage]) -> dict[str, GreyWindow]:
        """The window of each file of a stack: the one that the middle of its series states, else one for all of it."""
        stacks: dict[tuple[int, str], dict[str, GreyWindow | None]] = {}
        for file in dict.fromkeys(one.name for one in wanted):
            data = self._read(file)
            header = read_header(data, name=file) if sniff(data) == _DICOM else None
            # Projections of one series were exposed one by one: each keeps its own window.
            if header is not None and header.series[1] and header.modality in STACKED:
                stacks.setdefault(header.series, {})[file] = header.window
        shared = ((files, self._shared_window(files)) for files in stacks.values() if len(files) > 1)
        return {file: window for files, window in shared if window is not None for file in files}

    def _shared_window(self, files: dict[str, GreyWindow | None]) -> GreyWindow | None:
        stated = [window for window in files.values() if window is not None]
        if stated:
            return stated[len(stated) // 2]
        typical = [typical_window(self._read(file), name=file, most=self._most_frames) for file in files]
        found = [window for window in typical if window is not None]
        return GreyWindow(median(one.low for one in found), median(one.high for one in found)) if found else None

    def _pictures(self, wanted: ListedImage, window: GreyWindow | None) -> Iterator[tuple[bytes, ImportedImage]]:
        """The file's pictures in the form of a benchmark."""
        file = wanted.name
        data = self._read(file)
        blank = ImportedImage(id="", path="", origin=file, caption=wanted.caption, modality=wanted.modality)
        if sniff(data) != _DICOM:
            yield as_shown(data, name=file).data, blank
            return
        header = read_header(data, name=file)
        about = msgspec.structs.replace(
            blank,
            modality=wanted.modality or header.modality,
            body_part=header.body_part,
            view=header.view,
            is_burned_in=header.is_burned_in,
        )
        for picture in read_frames(data, name=file, most=self._most_frames, window=window):
            yield _as_png(picture), about

    def _write(self, number: int, data: bytes, about: ImportedImage) -> ImportedImage:
        name = digest_bytes(data)[:_ID_CHARS]
        suffix = ".png" if sniff(data) == PNG else ".jpg"
        path = f"images/case{number:05d}/{name}{suffix}"
        look = appearance(decode(data, name=about.origin))
        target = self._target / path
        if not target.exists():
            write_atomic(target, [data])
        return msgspec.structs.replace(about, id=name, path=path, phash="" if look is None else f"{look.hash:016x}")

    def _read(self, file: str) -> bytes:
        path = self._locate(file)
        if path.is_file() and path.stat().st_size > MAX_IMAGE_BYTES:
            raise DataError(f"larger than {MAX_IMAGE_BYTES:,} bytes", file=file, remedy="scale the image down")
        with open_for_reading(path) as stream:
            return stream.read()

    def _locate(self, name: str) -> Path:
        """The resolved path of a file, which must be below the source's folder: the table may come from anyone."""
        path = Path(os.path.realpath(self._source / name))
        if "\0" in name or not path.is_relative_to(self._source):
            raise DataError(
                "the path leads outside the source's folder", file=name, remedy="put the images next to the table"
            )
        return path


def _counted(name: str) -> list[tuple[int, str]]:
    """A name for sorting as people count: its numbers as numbers."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _as_png(picture: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "PNG", compress_level=6)
    return stream.getvalue()
