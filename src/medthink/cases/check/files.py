"""The files that the slots name, against the files that are there."""

from collections.abc import Iterator

from medthink.cases.case import Case, Image, ImageStore
from medthink.cases.check.report import Finding
from medthink.cases.stores import MISSING, path_problem


class FileLedger:
    """Strikes out each listed file as a slot claims it; what is left at the end belongs to nobody.

    Listing once is ten times faster than asking for each file; the store is asked only about what is not listed.
    """

    def __init__(self, store: ImageStore) -> None:
        self._store = store
        self._listed = frozenset(store.paths())
        self._unclaimed = set(self._listed)

    def check(self, case: Case) -> list[Finding]:
        """Missing, unsafe and repeated files of a case."""
        found = []
        for image in case.question.images:
            path = image.path
            if path in self._unclaimed:
                self._unclaimed.remove(path)
                if not path_problem(path):  # a zip or a parquet file can list a path that may not be opened
                    continue
            if (finding := self._explain(image)) is not None:
                found.append(finding)
        return found

    def extras(self) -> Iterator[Finding]:
        """The files that no slot named."""
        for path in sorted(self._unclaimed):
            # A file's name need not be Unicode, but what is reported must be.
            shown = path.encode(errors="backslashreplace").decode()
            yield Finding("image-file-extra", shown, "no slot names it")

    def _explain(self, image: Image) -> Finding | None:
        field = f"image_{image.slot:02d}_path"
        shown = ascii(image.path[:120])
        if image.path in self._listed and not path_problem(image.path):
            return Finding("image-path-repeated", field, f"{shown} is named by an earlier slot")
        problem = self._store.problem(image.path)
        if not problem:
            return None
        code = "image-file-missing" if problem == MISSING else "image-path-unsafe"
        return Finding(code, field, f"{problem}: {shown}")
