"""The benchmarks that runs were made on: each opened once, and checked to contain the run's texts."""

import contextlib
import threading
from functools import cached_property
from pathlib import Path

from medthink.audit.rivals import guess_longest, rival_guesses
from medthink.baselines.baseline import is_usable
from medthink.cases.benchmark import Benchmark, hold_split
from medthink.cases.case import Case, Image
from medthink.core.digest import digest_bytes
from medthink.core.errors import MedThinkError, UsageError
from medthink.runs.manifest import Manifest, find_benchmark
from medthink.runs.selection import Selection, pick_cases

_ID_LENGTH = 24
_CODE_LENGTH = 12


class LoadedSplit:
    """A split with its cases in memory, and its images by opaque ids."""

    def __init__(self, place: Path, split: str) -> None:
        self._whole = Benchmark.open(place)
        held = hold_split(self._whole[split])
        self.benchmark, self.cases, self.text_fingerprint = held.split, held.cases, held.text_fingerprint
        self._images = {
            self.image_id(case.id, image.slot): image for case in self.cases.values() for image in case.question.images
        }
        self._ids = {image.path: image_id for image_id, image in self._images.items()}
        self.answers = {case.id: case.reference.answer for case in self.cases.values()}
        self.rivals = [guess_longest([case for case in self.cases.values() if is_usable(case)])]
        self._has_learned = False
        self._selected: dict[Selection, dict[int, Case]] = {}

    def learn_rivals(self) -> None:
        """Train the guessers of `medthink audit`, or load their cached answers: the first time takes a while."""
        if self._has_learned:
            return
        self._has_learned = True
        # If they cannot be trained, the rule is the only rival.
        with contextlib.suppress(MedThinkError):
            self.rivals = rival_guesses(self._whole, self.benchmark.splits[0])

    def select(self, selection: Selection) -> dict[int, Case]:
        """The cases of a run, by number."""
        if selection not in self._selected:
            self._selected[selection] = {case.id: case for case in pick_cases(self.cases.values(), selection)}
        return self._selected[selection]

    def code(self, case_id: int) -> str:
        """An opaque name for a case, because its number could be looked up."""
        return digest_bytes(f"{self.text_fingerprint}/case/{case_id}".encode())[:_CODE_LENGTH]

    @cached_property
    def _by_code(self) -> dict[str, Case]:
        return {self.code(case.id): case for case in self.cases.values()}

    def case_by_code(self, code: str) -> Case | None:
        """The case with this code."""
        return self._by_code.get(code)

    def image_id(self, case_id: int, slot: int) -> str:
        """The id under which an image is served."""
        return digest_bytes(f"{self.text_fingerprint}/{case_id}/{slot}".encode())[:_ID_LENGTH]

    def image(self, image_id: str) -> Image | None:
        """The image with this id, if it is one of this split's."""
        return self._images.get(image_id)

    def image_at(self, path: str) -> Image | None:
        """The image at this path of the split."""
        found = self._ids.get(path)
        return None if found is None else self._images[found]

    def id_of(self, image: Image) -> str:
        """The id of an image of this split, whichever case it belongs to."""
        return self._ids[image.path]


class BenchmarkCache:
    """Benchmarks by path and split; `data` replaces all paths if they have moved."""

    def __init__(self, data: Path | None = None) -> None:
        self._data = data
        self._opened: dict[tuple[Path, str], LoadedSplit | str] = {}
        self._lock = threading.Lock()

    def find(self, run: Path, manifest: Manifest) -> LoadedSplit | str:
        """The split of a run, or the reason why it cannot be shown."""

        def read_own(place: Path) -> LoadedSplit | None:
            found = self.open(place, manifest.selection.split)
            return found if found.text_fingerprint == manifest.text_fingerprint else None

        try:
            # Not for every run in a folder that the viewer lists: that is a pass over all images for each.
            return find_benchmark(run, manifest, self._data, read_own, names_changes=False)
        except MedThinkError as error:
            return f"{error.problem}; {error.remedy}."

    def open(self, place: Path, split: str) -> LoadedSplit:
        """A split by name, or UsageError."""
        found = self._open(place, split)
        if isinstance(found, str):
            raise UsageError(found, remedy="check --data and --split")
        return found

    def image(self, image_id: str) -> Image | None:
        """The image with this id, of any split that is open."""
        with self._lock:
            opened = [one for one in self._opened.values() if isinstance(one, LoadedSplit)]
        return next((image for one in opened if (image := one.image(image_id))), None)

    def _open(self, place: Path, split: str) -> LoadedSplit | str:
        with self._lock:
            if (place, split) not in self._opened:
                self._opened[place, split] = _try_opening(place, split)
            return self._opened[place, split]


def _try_opening(place: Path, split: str) -> LoadedSplit | str:
    if not place.exists():
        return f"The benchmark is no longer at {place}. Give its path with --data."
    try:
        return LoadedSplit(place, split)
    except MedThinkError as error:
        return f"The benchmark cannot be read: {error}"
