"""`index.json`: one short row per prediction, so that lists of runs and cases are read without their texts.

A session leaves it next to `predictions.jsonl`. If it is missing or older than the predictions, the rows are read from
the predictions; while a run is in progress, or after it was killed, from its ledger. Reading never writes.
"""

import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import msgspec

from medthink.core.errors import DataError
from medthink.core.files import open_for_reading, write_atomic
from medthink.models.request import Usage
from medthink.runs.lock import is_held
from medthink.runs.records import LEDGER, Records, Totals

INDEX_FILE = "index.json"
PREDICTIONS_FILE = "predictions.jsonl"
FORMAT = 1
_LONGEST = 200


class IndexRow(msgspec.Struct, frozen=True, array_like=True):
    """What a list shows about one prediction; `answer` is the letter, or the beginning of a diagnosis in free text."""

    case: int
    sample: int
    state: str
    letter: str | None
    answer: str | None
    detail: str
    is_lenient: bool
    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    latency_s: float | None


class RunIndex(msgspec.Struct, frozen=True):
    """The rows by case and sample, and the size of the predictions they were made from."""

    format: int
    predictions_bytes: int
    rows: tuple[IndexRow, ...]


class _Line(msgspec.Struct):
    """The fields of a prediction that an index keeps; the decoder skips the texts."""

    case: int
    sample: int
    state: str
    detail: str = ""
    prediction: str | None = None
    prediction_text: str | None = None
    parse_mode: str | None = None
    lenient_steps: tuple[str, ...] = ()
    calls: tuple[int, ...] = ()
    tokens: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = 0.0


_read_line = msgspec.json.Decoder(_Line).decode
_read_index = msgspec.json.Decoder(RunIndex).decode


def write_index(run: Path) -> None:
    """Write the index of a run's predictions next to them."""
    size, rows = _read_predictions(run)
    write_atomic(run / INDEX_FILE, [msgspec.json.encode(RunIndex(FORMAT, size, rows))])


def read_rows(run: Path) -> tuple[IndexRow, ...]:
    """Every prediction of a run in short, finished or not; empty if there is none yet."""
    if is_unsettled(run):
        return _read_ledger(run)
    return _read_kept(run) or _read_predictions(run)[1]


def read_totals(run: Path) -> Totals | None:
    """What the calls of a run add up to, by its ledger; None where it has none yet."""
    if not (run / LEDGER).is_file():
        return None
    with closing(Records.open(run)) as records:
        return records.totals()


def is_unsettled(run: Path) -> bool:
    """Whether the ledger holds more than the predictions: the run is in progress, or was killed."""
    return is_killed(run) or is_held(run)


def is_killed(run: Path) -> bool:
    """Whether the last session ended before it wrote its predictions; they are only in the ledger."""
    log = run / f"{LEDGER}-wal"
    waits = log.exists() and log.stat().st_size > 0
    return waits or not (run / PREDICTIONS_FILE).is_file()


def stamp(run: Path) -> tuple[int, ...]:
    """A value that changes whenever anything shown in lists of the run changes."""
    names = ("run.json", PREDICTIONS_FILE, INDEX_FILE, LEDGER, f"{LEDGER}-wal")
    return tuple(part for name in names for part in _stamp_file(run / name))


def _stamp_file(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _read_kept(run: Path) -> tuple[IndexRow, ...] | None:
    """The rows of `index.json`, if it exists and matches the current predictions."""
    made_at, _ = _stamp_file(run / INDEX_FILE)
    changed_at, size = _stamp_file(run / PREDICTIONS_FILE)
    if made_at < changed_at or not made_at:
        return None
    try:
        found = _read_index((run / INDEX_FILE).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return found.rows if (found.format, found.predictions_bytes) == (FORMAT, size) else None


def _read_predictions(run: Path) -> tuple[int, tuple[IndexRow, ...]]:
    path = run / PREDICTIONS_FILE
    with open_for_reading(path) as stream:
        data = stream.read()
    # JSON Lines are split at line feeds only: texts may contain other characters that Python treats as line ends.
    return len(data), _shorten(enumerate(data.split(b"\n"), start=1), path)


def _read_ledger(run: Path) -> tuple[IndexRow, ...]:
    if not (run / LEDGER).is_file():
        return ()
    with closing(Records.open(run)) as records:
        return _ordered(map(_row, records.predictions_as(_Line)))


def _shorten(lines: Iterable[tuple[int, bytes]], path: Path) -> tuple[IndexRow, ...]:
    rows = []
    for number, line in lines:
        if not line:
            continue
        try:
            rows.append(_row(_read_line(line)))
        except msgspec.MsgspecError as error:
            raise DataError(
                f"not a prediction: {error}", file=path, row=number, remedy="run the same command again"
            ) from None
    return _ordered(rows)


def _ordered(rows: Iterable[IndexRow]) -> tuple[IndexRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.case, row.sample)))


def _row(line: _Line) -> IndexRow:
    answer = line.prediction or line.prediction_text
    return IndexRow(
        case=line.case,
        sample=line.sample,
        state=line.state,
        letter=line.prediction,
        answer=answer[:_LONGEST] if answer else None,
        detail=line.detail[:_LONGEST],
        is_lenient=line.parse_mode == "lenient" or bool(line.lenient_steps),
        calls=len(line.calls),
        input_tokens=line.tokens.input if line.tokens else None,
        output_tokens=line.tokens.output if line.tokens else None,
        cost_usd=line.cost_usd,
        latency_s=line.latency_s,
    )
