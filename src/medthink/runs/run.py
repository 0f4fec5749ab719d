"""A run on disk, opened for reading."""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec.structs import force_setattr, replace

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.digest import digest_file
from medthink.core.errors import DataError, MedThinkError, UsageError
from medthink.core.files import open_for_reading, write_atomic
from medthink.core.jsonio import read_stored_rows
from medthink.core.markup import Markup, html_table, joined, tag
from medthink.core.numbers import as_usd
from medthink.models.request import Usage
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.lock import is_locked
from medthink.runs.ledger.queries import LEDGER, LedgerQueries, Spent, name_cases
from medthink.runs.manifest import Manifest, Progress, find_benchmark, read_manifest, write_manifest
from medthink.runs.progress import LIVE, WINDOW_S, LiveCounts, ProgressFile
from medthink.runs.selection import ReadSelected, read_selected
from medthink.runs.survey import find_changed
from medthink.workflow.prediction import Prediction

if TYPE_CHECKING:
    import pandas as pd


def read_status(run: Path) -> LiveCounts:
    """The counts of a run, even while another process works on it."""
    manifest = read_manifest(run)
    counts = LiveCounts()
    counts.is_running = is_locked(run)
    live = _read_announcement(run)
    _take_totals(counts, manifest, live)
    if (run / LEDGER).is_file():
        with closing(LedgerQueries.open(run)) as records:
            _take_records(counts, records)
    if live is None or not counts.is_running:
        counts.phase, counts.in_flight = "ended", 0
    return counts


def _take_totals(counts: LiveCounts, manifest: Manifest, live: ProgressFile | None) -> None:
    if manifest.progress is not None:
        counts.predictions = manifest.progress.cases
        counts.calls = sum(manifest.progress.calls.values())
    if live is not None:
        counts.phase, counts.detail, counts.since = live.phase, live.detail, live.since
        counts.predictions = live.predictions or counts.predictions
        counts.calls = live.calls or counts.calls
        counts.max_usd, counts.max_calls = live.max_usd, live.max_calls


def _take_records(counts: LiveCounts, records: LedgerQueries) -> None:
    totals = records.totals(is_running=counts.is_running)
    counts.states.update(records.prediction_states())
    counts.done, counts.failed = totals.calls.get("done", 0), totals.calls.get("failed", 0)
    counts.queued = totals.calls.get("queued", 0)
    # Calls are recorded as open before they have a place; only this many are in progress.
    intended = totals.calls.get("open", 0)
    counts.in_flight = min(intended, records.places() or intended)
    counts.retried = totals.retries
    if counts.is_running:
        counts.reasons.update(records.retry_reasons())
        counts.latencies.extend(records.latencies(counts.latencies.maxlen or 0))
    counts.take_spent(records, totals.own)
    counts.ends.extend(sorted(records.ends_since(time.time() - WINDOW_S)))
    counts.began = min([*counts.ends, counts.began])


def _read_announcement(run: Path) -> ProgressFile | None:
    try:
        return msgspec.json.decode((run / LIVE).read_bytes(), type=ProgressFile)
    except (OSError, msgspec.DecodeError):
        return None


def run_card(run: "Run") -> Markup:
    """The run's model, task and condition, and a bar of its predictions."""
    manifest, counts = run.manifest, read_status(run.path)
    bar = tag("progress", value=counts.predicted, max=max(1, counts.predictions))
    states = ", ".join(f"{count} {state}" for state, count in counts.states.most_common()) or "none yet"
    rows = [
        ("model", manifest.model),
        ("task", manifest.task),
        ("condition", manifest.label()),
        ("predictions", joined((bar, f" {counts.predicted:,} of {counts.predictions:,}: {states}"))),
        ("state", _state(counts.predicted == counts.predictions, is_running=counts.is_running)),
        ("cost", as_usd(counts.cost_usd, is_least=counts.is_least_cost)),
    ]
    return joined((tag("p", tag("b", "Run"), f" {run.path}"), html_table(("", ""), rows)))


def _state(is_complete: bool, *, is_running: bool) -> str:
    if is_running:
        return "running"
    return "complete" if is_complete else "unfinished: run it again to continue"


PREDICTIONS_FILE = "predictions.jsonl"
_LONGEST = 200


class IndexRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows about one prediction: its fields in the file, texts shortened or skipped by the decoder."""

    case: int
    sample: int
    state: str
    detail: str = ""
    prediction: str | None = None
    prediction_text: str | None = None
    tokens: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = 0.0

    def __post_init__(self) -> None:
        if len(self.detail) > _LONGEST:
            force_setattr(self, "detail", self.detail[:_LONGEST])
        if self.prediction_text and len(self.prediction_text) > _LONGEST:
            force_setattr(self, "prediction_text", self.prediction_text[:_LONGEST])

    @property
    def answer(self) -> str | None:
        """The letter, or the beginning of a diagnosis in free text."""
        return self.prediction or self.prediction_text


_rows = msgspec.json.Decoder(IndexRow)


def read_rows(run: Path) -> tuple[IndexRow, ...]:
    """The row of every prediction of a run, finished or not; empty if there is none yet."""
    rows = _read_predictions(run) if is_settled(run) else _read_ledger(run)
    return tuple(sorted(rows, key=lambda row: (row.case, row.sample)))


def read_spent(run: Path, *, is_running: bool) -> Spent | None:
    """What the calls of a run cost, by its ledger; None if it has none yet."""
    if not (run / LEDGER).is_file():
        return None
    with closing(LedgerQueries.open(run)) as records:
        return records.totals(is_running=is_running).spent


def is_settled(run: Path, manifest: Manifest | None = None) -> bool:
    """Whether the predictions file and run.json hold all that the ledger holds; not during a run, nor after a kill."""
    if not (run / PREDICTIONS_FILE).is_file():
        return False
    if not (run / LEDGER).is_file():
        return True
    progress = (manifest or read_manifest(run)).progress
    with closing(LedgerQueries.open(run)) as records:
        return progress is not None and records.changes() == progress.changes


def refuse_altered(run: Path, manifest: Manifest) -> None:
    """Raise an error, naming the cases, if a stored call or prediction is not as the run wrote it."""
    if (run / LEDGER).is_file():
        with closing(LedgerQueries.open(run)) as records:
            records.verify()
    progress = manifest.progress
    if progress is None or not progress.predictions_digest or not is_settled(run, manifest):
        return
    path = run / PREDICTIONS_FILE
    if digest_file(path) != progress.predictions_digest:
        raise DataError(
            f"predictions were altered after the run wrote them{_name_altered(run)}",
            file=path,
            remedy="run the same command again: it rewrites them from the ledger",
        )


def _name_altered(run: Path) -> str:
    """The cases whose lines differ from the ledger's, where there is one."""
    if not (run / LEDGER).is_file():
        return ""
    with closing(LedgerQueries.open(run)) as records, open_for_reading(run / PREDICTIONS_FILE) as stream:
        pairs = zip_longest((line.rstrip(b"\n") for line in stream), records.predictions())
        cases = {_read_case(stored or line) for line, stored in pairs if line != stored}
    return f": {name_cases(cases)}"


def _read_case(line: bytes | None) -> int:
    try:
        return _rows.decode(line or b"").case
    except msgspec.MsgspecError:
        return -1


def stamp(run: Path) -> tuple[int, ...]:
    """A value that changes whenever anything shown in lists of the run changes."""
    names = ("run.json", PREDICTIONS_FILE, LEDGER, f"{LEDGER}-wal")
    return tuple(part for name in names for part in _stamp_file(run / name))


def _stamp_file(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _read_predictions(run: Path) -> list[IndexRow]:
    path = run / PREDICTIONS_FILE
    with open_for_reading(path) as stream:
        data = stream.read()
    try:
        return _rows.decode_lines(data)
    except msgspec.MsgspecError:
        # Once more line by line, which is slower and names the line that is no prediction. They end at line feeds only:
        # texts may contain other characters that Python treats as line ends.
        return [_read_line(line, number, path) for number, line in enumerate(data.split(b"\n"), start=1) if line]


def _read_line(line: bytes, number: int, path: Path) -> IndexRow:
    try:
        return _rows.decode(line)
    except msgspec.MsgspecError as error:
        raise DataError(
            f"not a prediction: {error}", file=path, row=number, remedy="run the same command again"
        ) from None


def _read_ledger(run: Path) -> list[IndexRow]:
    if not (run / LEDGER).is_file():
        return []
    with closing(LedgerQueries.open(run)) as records:
        return list(records.predictions_as(IndexRow))


class Run:
    """A finished or unfinished run: its settings and results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: Manifest = read_manifest(path)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a run's folder."""
        return cls(Path(path))

    def predictions(self) -> Iterator[Prediction]:
        """Every prediction, by case and sample; for a killed run, those in its ledger."""
        return self._on_file() if is_settled(self.path, self.manifest) else self._on_record()

    def _on_file(self) -> Iterator[Prediction]:
        path = self.path / PREDICTIONS_FILE
        if path.stat().st_size == 0:
            raise self._no_result()
        yield from read_stored_rows(path, Prediction, name="a prediction", remedy="run the same command again")

    def _on_record(self) -> Iterator[Prediction]:
        if not (self.path / LEDGER).is_file():
            raise self._no_result()
        count = 0
        with closing(LedgerQueries.open(self.path)) as records:
            for count, one in enumerate(records.predictions_as(Prediction), start=1):  # noqa: B007
                yield one
        if not count:
            raise self._no_result()

    def _no_result(self) -> DataError:
        progress = self.manifest.progress
        if progress is not None and progress.cases == 0:
            return DataError(
                "the run has no cases",
                file=self.path,
                remedy="this is an empty shard: merge it with the others",
            )
        return DataError(
            "the run was stopped before it had results", file=self.path, remedy="run the same command again"
        )

    def cases(self, data: Path | None = None, *, read: ReadSelected = read_selected) -> dict[int, Case]:
        """The run's cases by number, from its benchmark or from `data`; one with other texts is refused."""

        def read_own(place: Path) -> dict[int, Case] | None:
            found = read(place, self.manifest.selection)
            return found.cases if found.text_fingerprint == self.manifest.text_fingerprint else None

        return find_benchmark(self.path, self.manifest, data, read_own)

    def benchmark_path(self, data: Path | None = None) -> Path:
        """The path of the run's benchmark; one with other texts is refused."""

        def read_own(place: Path) -> Path | None:
            split = Benchmark.open(place)[self.manifest.selection.split]
            return place if split.text_fingerprint() == self.manifest.text_fingerprint else None

        return find_benchmark(self.path, self.manifest, data, read_own)

    def split(self, data: Path | None = None) -> Benchmark:
        """The run's whole split, for showing images: other texts or images are refused."""

        def read_own(place: Path) -> Benchmark | None:
            split = Benchmark.open(place)[self.manifest.selection.split].remembering()
            return split if split.fingerprint() == self.manifest.fingerprint else None

        return find_benchmark(self.path, self.manifest, data, read_own)

    def split_and_changes(self, data: Path | None = None) -> tuple[Benchmark, frozenset[int]]:
        """The whole split, and the cases whose images have changed; other texts are refused."""
        return find_benchmark(self.path, self.manifest, data, self._read_split_and_changes)

    def _read_split_and_changes(self, place: Path) -> tuple[Benchmark, frozenset[int]] | None:
        split = Benchmark.open(place)[self.manifest.selection.split].remembering()
        digests: dict[int, str] = {}
        prints = split.pass_prints(lambda case, made: digests.update({case.id: made.digest})).finish()
        if prints.whole == self.manifest.fingerprint:
            return split, frozenset()
        changed = find_changed(self.path, digests)
        is_known = prints.texts == self.manifest.text_fingerprint and changed is not None
        return (split, frozenset(changed or ())) if is_known else None

    def to_pandas(self) -> "pd.DataFrame":
        """The predictions as a data frame, one row per case and sample."""
        try:
            import pandas as pd
        except ImportError:
            raise UsageError("pandas is not installed", remedy="pip install pandas, or use predictions()") from None
        return pd.DataFrame.from_records([msgspec.to_builtins(one) for one in self.predictions()])

    def __repr__(self) -> str:
        manifest = self.manifest
        return f"Run({str(self.path)!r}: {manifest.model}, {manifest.task}, {manifest.condition.label()})"

    def _repr_html_(self) -> str:

        return run_card(self)


RunOrPath = Run | str | Path


def path_of(run: RunOrPath) -> Path:
    """The folder of a run, given as a path or an open run."""
    return run.path if isinstance(run, Run) else Path(run)


def write_results(
    out: Path, manifest: Manifest, ledger: Ledger, total: int, *, ended_by: MedThinkError | None = None
) -> None:
    """Write predictions and manifest from the ledger; the same ledger gives the same bytes."""
    written = hashlib.sha256()

    def lines() -> Iterator[bytes]:
        for body in ledger.predictions():
            written.update(line := body + b"\n")
            yield line

    write_atomic(out / PREDICTIONS_FILE, lines())
    progress = replace(summarise(ledger, total), predictions_digest=written.hexdigest())
    if ended_by is not None:
        progress = replace(progress, stopped_by=ended_by.problem, remedy=ended_by.remedy)
    write_manifest(out, replace(manifest, progress=progress))


def summarise(ledger: LedgerQueries, total: int, *, is_running: bool = False) -> Progress:
    """The run's progress, computed from its ledger."""
    totals, states = ledger.totals(is_running=is_running), ledger.prediction_states()
    return Progress(
        cases=total,
        states=states,
        calls={str(state): count for state, count in totals.calls.items()},
        attempts=totals.attempts,
        image_replies=totals.image_warnings.replies,
        image_doubts=totals.image_warnings.doubtful,
        cost_usd=totals.spent.cost_usd,
        uncounted_replies=totals.spent.uncounted,
        usage_doubts=totals.usage_doubts,
        reported_models=ledger.reported_models(),
        first_call_at=totals.first_call_at,
        last_call_at=totals.last_call_at,
        is_complete=sum(states.values()) == total and not totals.calls.get("queued"),
        changes=ledger.changes(),
    )
