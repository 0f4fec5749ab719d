"""Scores of submissions, each read from the store once and kept compact, so that a board of hundreds fits in memory."""

import threading
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.audit.gain import RivalAnswers, gain_over_strongest, gain_rng, guesser_answers, image_free_name
from medthink.audit.rivals import Guesses, rival_guesses
from medthink.board.benchmarks import BoardBenchmark
from medthink.board.checking import LoadedBenchmark
from medthink.board.submissions import SubmissionRecord
from medthink.cases.benchmark import Benchmark
from medthink.core.clock import now_utc
from medthink.core.digest import digest_value
from medthink.scoring.scores import CaseScore, Scores, samples_per_case
from medthink.stats import Measured, wilson
from medthink.store import tables
from medthink.store.engine import Store, insert_if_missing

_AT_ONCE = 100


class BoardResult(msgspec.Struct, frozen=True, kw_only=True):
    """A submission's scores without case-by-case values, and the cases as plain columns.

    `cases`, `golds`, `rights`, `answers` and `states` are parallel; answers and states are those of the first sample.
    """

    scores: Scores
    cases: tuple[int, ...]
    golds: tuple[str, ...]
    rights: tuple[float, ...]
    answers: tuple[str | None, ...]
    states: tuple[str, ...]

    def with_cases(self, name: str) -> Scores:
        """The scores with their cases restored (first sample of each), under another name; enough to compare two."""
        columns = zip(self.cases, self.rights, self.states, self.answers, self.golds, strict=True)
        cases = tuple(
            CaseScore(case=case, right=right, states=(state,), letters=(answer,), gold=gold)
            for case, right, state, answer, gold in columns
        )
        origin = msgspec.structs.replace(self.scores.origin, name=name)
        return msgspec.structs.replace(self.scores, cases=cases, origin=origin)


class ScoreCache:
    """A cache of scores, so that a board of hundreds of rows is not read again for each page."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[tuple[int, str, str], BoardResult] = {}
        self._lock = threading.Lock()

    def read(self, numbers: Iterable[int], until: str | None = None) -> dict[int, BoardResult]:
        """The results of these submissions by their numbers, as they were known at a time."""
        newest = self._newest(set(numbers), until)
        with self._lock:
            missing = [key for key in newest.values() if key not in self._kept]
            for start in range(0, len(missing), _AT_ONCE):
                self._kept |= self._load(missing[start : start + _AT_ONCE])
            return {number: self._kept[key] for number, key in newest.items() if key in self._kept}

    def _newest(self, wanted: set[int], until: str | None) -> dict[int, tuple[int, str, str]]:
        table = tables.scores
        query = sa.select(table.c.submission_id, table.c.scorer, table.c.made_at).order_by(table.c.made_at)
        with self._store.read() as connection:
            rows = [tuple(row) for row in connection.execute(query) if row.submission_id in wanted]
        newest: dict[int, tuple[int, str, str]] = {}
        for number, scorer, made_at in rows:
            # The newest scores before that time count or, if there are none, the first ones made.
            if number not in newest or until is None or made_at <= until:
                newest[number] = (number, scorer, made_at)
        return newest

    def _load(self, keys: list[tuple[int, str, str]]) -> Mapping[tuple[int, str, str], BoardResult]:
        table = tables.scores
        columns = (table.c.submission_id, table.c.scorer, table.c.made_at, sa.cast(table.c.scores, sa.Text))
        query = sa.select(*columns).where(table.c.submission_id.in_([number for number, _, _ in keys]))
        wanted = set(keys)
        with self._store.read() as connection:
            rows = connection.execute(query).all()
        return {
            (number, scorer, made_at): make_result(msgspec.json.decode(body, type=Scores))
            for number, scorer, made_at, body in rows
            if (number, scorer, made_at) in wanted
        }


def make_result(scores: Scores) -> BoardResult:
    """Scores in the form a board stores them."""
    steps = tuple(msgspec.structs.replace(step, case_values={}) for step in scores.steps)
    return BoardResult(
        scores=msgspec.structs.replace(scores, cases=(), steps=steps),
        cases=tuple(one.case for one in scores.cases),
        golds=tuple(one.gold for one in scores.cases),
        rights=tuple(one.right for one in scores.cases),
        answers=tuple(one.letters[0] if one.letters else None for one in scores.cases),
        states=tuple(one.states[0] if one.states else "failed" for one in scores.cases),
    )


def ensure_rivals(store: Store, benchmark: BoardBenchmark, held: LoadedBenchmark) -> list[Guesses]:
    """The rivals of a benchmark, trained and stored if missing, which takes a while the first time."""
    known = read_rivals(store, benchmark.id)
    if known:
        return known
    rows: list[dict[str, Any]] = [
        {"benchmark_id": benchmark.id, "made_at": now_utc()} | msgspec.to_builtins(one._asdict(), str_keys=True)
        for one in rival_guesses(Benchmark.open(held.split.path), benchmark.split)
    ]
    with store.write() as connection:
        for row in rows:
            # Two workers may have trained them at once: the same ones.
            connection.execute(insert_if_missing(connection, tables.rivals, row))
    return read_rivals(store, benchmark.id)


def read_rivals(store: Store, benchmark_id: int, until: str | None = None) -> list[Guesses]:
    """The rivals of a benchmark that are stored, or were at a time, by name."""
    table = tables.rivals
    query = sa.select(table.c.name, table.c.source, table.c.letters).where(table.c.benchmark_id == benchmark_id)
    if until is not None:
        query = query.where(table.c.made_at <= until)
    with store.read() as connection:
        rows = connection.execute(query.order_by(table.c.name)).all()
    return [
        Guesses(name, source, {int(case): letter for case, letter in letters.items()}) for name, source, letters in rows
    ]


_VERSION = 3
_GAIN = "gain"


class ScoredSubmission(NamedTuple):
    """A submission with its result."""

    submission: SubmissionRecord
    result: BoardResult


class RowGain(msgspec.Struct, frozen=True, kw_only=True):
    """A row's accuracy minus that of its strongest rival, paired by case.

    `has_own_blind` says whether a run of the same model without images was among the rivals: without one, the gain may
    come from the text alone. `digest` identifies its inputs.
    """

    rival: str
    rival_accuracy: Measured
    gain: Measured
    has_own_blind: bool
    digest: str


def find_gains(
    store: Store,
    benchmark: BoardBenchmark,
    rows: Sequence[ScoredSubmission],
    rivals: Sequence[Guesses],
    *,
    beside: Sequence[ScoredSubmission] = (),
) -> dict[int, RowGain]:
    """The gains of submissions by number; missing ones are computed and stored.

    Rows of the same model among `rows` and `beside` are rivals if they saw no images.
    """
    known = _known_gains(store)
    kin: dict[tuple[str, ...], list[ScoredSubmission]] = {}
    for row in (*rows, *beside):
        kin.setdefault(_kin(row), []).append(row)
    found: dict[int, RowGain] = {}
    for row in rows:
        golds = list(zip(row.result.cases, row.result.golds, strict=True))
        against = [guesser_answers(rival, golds) for rival in rivals]
        against += _own_blind(row, kin[_kin(row)])
        if not against:
            continue
        number = row.submission.id
        told = [tuple(rival) for rival in sorted(against)]
        digest = digest_value([_VERSION, benchmark.text_fingerprint, row.result.rights, told])
        if number not in known or known[number].digest != digest:
            known[number] = _measure(benchmark, row.result, against, digest)
            with store.write() as connection:
                _store_gain(connection, number, known[number])
        found[number] = known[number]
    return found


def _known_gains(store: Store) -> dict[int, RowGain]:
    """The gains that are stored; one written by another release in another format is ignored."""
    table = tables.measures
    with store.read() as connection:
        rows = connection.execute(sa.select(table.c.submission_id, table.c.body).where(table.c.kind == _GAIN)).all()
    found = ((number, convert_or_none(body, RowGain)) for number, body in rows)
    return {number: gain for number, gain in found if gain is not None}


def _store_gain(connection: Connection, number: int, gain: RowGain) -> None:
    table = tables.measures
    connection.execute(table.delete().where(table.c.submission_id == number, table.c.kind == _GAIN))
    row = {"submission_id": number, "kind": _GAIN, "made_at": now_utc(), "body": msgspec.to_builtins(gain)}
    connection.execute(insert_if_missing(connection, table, row))


_Measure = TypeVar("_Measure", bound=msgspec.Struct)


def convert_or_none(body: object, shape: type[_Measure]) -> _Measure | None:
    """A stored measure; None if there is none, or if another release wrote it in another format."""
    try:
        return msgspec.convert(body, shape)
    except msgspec.ValidationError:
        return None


def _kin(row: ScoredSubmission) -> tuple[str, ...]:
    """A key shared by rows of the same team and model; rows of other teams are not rivals."""
    origin = row.result.scores.origin
    return (row.submission.team, origin.model, origin.task)


def _own_blind(row: ScoredSubmission, kin: Sequence[ScoredSubmission]) -> Iterator[RivalAnswers]:
    """The same model's rows without images; none if the condition is unknown."""
    for other in kin:
        blind = image_free_name(row.result.scores.origin.condition, other.result.scores.origin.condition)
        if blind and other.result.cases == row.result.cases:
            samples = samples_per_case(other.result.scores)
            yield RivalAnswers(blind, other.result.rights, run=str(other.submission.id), samples=samples)


def _measure(
    benchmark: BoardBenchmark, result: BoardResult, against: Sequence[RivalAnswers], digest: str
) -> RowGain:  # fmt: skip
    over = gain_over_strongest(result.rights, against, rng=gain_rng(benchmark.text_fingerprint))
    return RowGain(
        rival=over.rival.name,
        rival_accuracy=over.rival.accuracy,
        gain=over.gain,
        has_own_blind=over.has_own_blind,
        digest=digest,
    )


class PublishedResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reported total; `note` says where the source contradicts itself."""

    model: str
    mode: str
    right: int
    effort: str = ""
    note: str = ""


class PublishedResults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All results of one source."""

    source: str
    split: str
    n_cases: int
    results: tuple[PublishedResult, ...]

    def accuracy(self, result: PublishedResult) -> Measured:
        """The reported accuracy with its interval."""
        return wilson(result.right, self.n_cases)


def load_published() -> PublishedResults:
    """The 59 results that were published with the benchmark, the highest first."""
    text = files("medthink.board").joinpath("published.toml").read_text(encoding="utf-8")
    found = msgspec.convert(tomllib.loads(text), PublishedResults)
    return msgspec.structs.replace(found, results=tuple(sorted(found.results, key=lambda one: -one.right)))
