"""The guessers that every run is compared with, the same for `score`, `report` and `probe`; trained once."""

from pathlib import Path

import msgspec

from medthink import __version__
from medthink.baselines import Inputs
from medthink.baselines.learning import is_usable
from medthink.cases.benchmark import Benchmark
from medthink.core.digest import digest_value
from medthink.core.errors import DataError
from medthink.core.files import cache_folder, write_atomic
from medthink.core.jsonio import encode_json, read_json
from medthink.validity.guesses import (
    FOLDS,
    TRAIN,
    Guessable,
    Guesses,
    gather,
    guess_by_inputs,
    guess_longest,
)

IMAGE_FREE: tuple[Inputs, ...] = ("options", "question")


def rival_guesses(benchmark: Benchmark, split: str) -> list[Guesses]:
    """The longest option, and guessers trained on the options alone and on history and options.

    Training takes a while, so the guessers' answers are cached by the texts of the splits and the release. A split with
    too few cases to train on has only the longest-option rule.
    """
    cases = [case for case in benchmark[split] if is_usable(case)]
    rule = guess_longest(cases)
    if len(cases) < 2 * FOLDS:
        return [rule]
    key = [benchmark[name].text_fingerprint() for name in (TRAIN, split) if name in benchmark.splits]
    material: list[Guessable] = []
    found = [rule]
    for inputs in IMAGE_FREE:
        place = cache_folder() / "guesses" / f"{digest_value([key, split, inputs, __version__])}.json"
        guesses = _read(place)
        if guesses is None:
            material = material or [gather(benchmark, split)]
            guesses = guess_by_inputs(material[0], inputs)
            _keep(place, guesses)
        found.append(guesses)
    return found


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
