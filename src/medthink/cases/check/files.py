"""The files that the slots name, against the files that are there."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from medthink.cases.case import Case, Image, ImageStore
from medthink.cases.check.report import Finding
from medthink.cases.stores import LINKS_OUT, MISSING, path_problem


class _Folder(NamedTuple):
    """The files of a folder that no slot has named yet, and those that one has."""

    unclaimed: set[str]
    claimed: set[str]


class FileLedger:
    """Strikes out each listed file as a slot claims it; what is left at the end belongs to nobody.

    Listing once is ten times faster than asking for each file; the store is asked only about what is not listed. Nearly
    every folder holds the files of one case and nothing else, and is struck out as a whole.
    """

    def __init__(self, store: ImageStore) -> None:
        self._store = store
        self._untouched = store.listing()
        self._struck_out: dict[str, list[str]] = {}
        self._others: dict[str, _Folder] = {}

    def check(self, case: Case) -> list[Finding]:
        """Missing, unsafe and repeated files of a case."""
        images = case.question.images
        paths = sorted([image.path for image in images])
        folder = _folder_of(paths[0]) if paths else ""
        # What stands under no folder may not be opened.
        if folder and self._untouched.get(folder) == paths:
            self._struck_out[folder] = self._untouched.pop(folder)
            return []
        return [finding for image in images if (finding := self._claim(image)) is not None]

    def extras(self) -> Iterator[Finding]:
        """The files that no slot named."""
        unclaimed = [*self._untouched.values(), *[folder.unclaimed for folder in self._others.values()]]
        for path in sorted(chain(*unclaimed)):
            # A file's name need not be Unicode, but what is reported must be.
            shown = path.encode(errors="backslashreplace").decode()
            if problem := path_problem(path):
                yield Finding("image-path-unsafe", shown, f"{problem}; no slot names it")
            else:
                yield Finding("image-file-extra", shown, "no slot names it")

    def _claim(self, image: Image) -> Finding | None:
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
            return Finding("image-path-repeated", field, f"{shown} is named by an earlier slot")
        problem = self._store.problem(path)
        if not problem:
            return None
        if problem.startswith(LINKS_OUT):
            return Finding("image-path-unsafe", field, problem)  # which names the link: it may be a folder's
        code = "image-file-missing" if problem == MISSING else "image-path-unsafe"
        return Finding(code, field, f"{problem}: {shown}")

    def _open(self, name: str) -> _Folder:
        if name not in self._others:
            claimed = self._struck_out.pop(name, [])
            self._others[name] = _Folder(set(self._untouched.pop(name, [])), set(claimed))
        return self._others[name]


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]
