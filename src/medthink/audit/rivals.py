"""The guessers that every run is compared with, the same for `score`, `report` and `audit`; trained once."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from medthink import __version__
from medthink.baselines import Inputs
from medthink.baselines.baseline import is_usable, longest_letter, rank_letters
from medthink.baselines.guesser import cross_validated, most_probable, train_guesser
from medthink.baselines.image_features import image_digests
from medthink.baselines.text_features import normalise
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.cases.check.texts import SimilarTextFinder, normalised_words
from medthink.core.digest import digest_value
from medthink.core.errors import DataError, UsageError
from medthink.core.files import cache_folder, write_atomic
from medthink.core.jsonio import encode_json, read_json

TRAIN = "train"
FOLDS = 5
GuessSource = Literal["train split", "cross-validated", "rule"]


class Guesses(NamedTuple):
    """A guesser's letter for every case, and its training data."""

    name: str
    source: GuessSource
    letters: dict[int, str]


class Guessable(NamedTuple):
    """The cases to guess, and those to train on (none: cross-validation)."""

    cases: list[Case]
    lessons: list[Case]


def guessable_cases(benchmark: Benchmark, split: str) -> Guessable:
    """The usable cases of the split, and the train split's unless that is the split itself."""
    cases = [case for case in benchmark[split] if is_usable(case)]
    if len(cases) < 2 * FOLDS:
        raise UsageError(f"{len(cases)} usable cases are too few for an audit", remedy="audit a larger split")
    has_lessons = TRAIN in benchmark.splits and split != TRAIN
    lessons = [case for case in benchmark[TRAIN] if is_usable(case)] if has_lessons else []
    return Guessable(cases, lessons)


def look_alike_groups(cases: Sequence[Case]) -> list[int]:
    """For each case the position of the first that looks like it: the same answer, and nearly the same history.

    Where there is no history, the options stand for it.
    """
    finder = SimilarTextFinder()
    for place, case in enumerate(cases):
        text = case.question.history.strip() or " ".join(sorted(case.question.options.values()))
        finder.add(str(place), normalised_words(text))
    answers = [normalise(case.question.options[case.reference.answer]) for case in cases]
    groups = list(range(len(cases)))
    for match in finder.matches():
        if answers[match.first] == answers[match.second]:
            groups[match.second] = groups[match.first]
    return groups


def guess_by_inputs(material: Guessable, inputs: Inputs) -> Guesses:
    """A trained guesser that sees these inputs and nothing else."""
    if not material.lessons:
        found = cross_validated(material.cases, inputs, folds=FOLDS, groups=look_alike_groups(material.cases))
        return Guesses(f"guesser:{inputs}", "cross-validated", {guess.case_id: guess.letter for guess in found})
    guesser = train_guesser(material.lessons, inputs)
    ranked = guesser.rank_all([case.question for case in material.cases])
    letters = {case.id: most_probable(ranks) for case, ranks in zip(material.cases, ranked, strict=True)}
    return Guesses(f"guesser:{inputs}", "train split", letters)


def guess_longest(cases: Sequence[Case]) -> Guesses:
    """The longest option."""
    return Guesses("longest option", "rule", {case.id: longest_letter(case.question) for case in cases})


def guess_majority(material: Guessable) -> Guesses:
    """Always the most frequent right letter in the train split, or in the other folds."""
    if material.lessons:
        letter = rank_letters(material.lessons)[0]
        return Guesses("majority letter", "train split", {case.id: letter for case in material.cases})
    letters: dict[int, str] = {}
    for fold in range(FOLDS):
        rest = [case for place, case in enumerate(material.cases) if place % FOLDS != fold]
        letter = rank_letters(rest)[0]
        letters |= {case.id: letter for case in material.cases[fold::FOLDS]}
    return Guesses("majority letter", "cross-validated", letters)


IMAGE_FREE: tuple[Inputs, ...] = ("options", "question")
_SEEN: dict[Inputs, str] = {
    "options": "options alone",
    "question": "history and options",
    "images": "images and options",
}


def rival_guesses(benchmark: Benchmark, split: str, *, advance: Callable[[str], object] = str) -> list[Guesses]:
    """The longest option, and guessers trained on the options alone and on history and options.

    Training takes a while, so the guessers' answers are cached by the texts of the splits and the release; `advance` is
    called with what a guesser sees before it is trained. A split with too few cases to train on has only the
    longest-option rule.
    """
    cases = [case for case in benchmark[split] if is_usable(case)]
    rule = guess_longest(cases)
    if len(cases) < 2 * FOLDS:
        return [rule]
    known = KeptGuesses(benchmark, split)
    return [rule, *(known.by_inputs(inputs, advance) for inputs in IMAGE_FREE)]


class KeptGuesses:
    """What trained guessers answer on a split, kept on disk by what they see; trained where nothing is kept."""

    def __init__(self, benchmark: Benchmark, split: str) -> None:
        self._benchmark = benchmark
        self._split = split
        self._texts = [benchmark[name].text_fingerprint() for name in (TRAIN, split) if name in benchmark.splits]

    @cached_property
    def material(self) -> Guessable:
        """The cases, read once."""
        return guessable_cases(self._benchmark, self._split)

    def by_inputs(self, inputs: Inputs, advance: Callable[[str], object] = str) -> Guesses:
        """The answers of the guesser with these inputs; `advance` is called with what it sees before it is trained."""
        seen = self._images() if inputs == "images" else []
        place = (
            cache_folder() / "guesses" / f"{digest_value([self._texts, seen, self._split, inputs, __version__])}.json"
        )
        guesses = _read(place)
        if guesses is None:
            advance(_SEEN[inputs])
            guesses = guess_by_inputs(self.material, inputs)
            _keep(place, guesses)
        return guesses

    def _images(self) -> list[str]:
        cases = [*self.material.lessons, *self.material.cases]
        return image_digests([case.question for case in cases])


def _read(place: Path) -> Guesses | None:
    if not place.is_file():
        return None
    try:
        return msgspec.convert(read_json(place), Guesses, strict=False)
    except (DataError, msgspec.ValidationError):
        return None


def _keep(place: Path, guesses: Guesses) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, [encode_json(msgspec.to_builtins(guesses, str_keys=True))])
    except OSError:
        # A cache that cannot be written costs time, but changes no numbers.
        return
