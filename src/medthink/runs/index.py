"""One short row per prediction, for lists of runs and cases.

The rows are read from `predictions.jsonl`; while a run is in progress, or after it was killed, from its ledger. Reading
never writes.
"""

import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import msgspec

from medthink.core.errors import DataError
from medthink.core.files import open_for_reading
from medthink.models.request import Usage
from medthink.runs.lock import is_held
from medthink.runs.records import LEDGER, Records, Totals

PREDICTIONS_FILE = "predictions.jsonl"
_LONGEST = 200


class IndexRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows about one prediction; `answer` is the letter, or the beginning of a diagnosis in free text."""

    case: int
    sample: int
    state: str
    letter: str | None = None
    answer: str | None = None
    detail: str = ""
    is_lenient: bool = False
    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = 0.0


class _Line(msgspec.Struct):
    """The fields of a prediction that a row keeps; the decoder skips the texts."""

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


_lines = msgspec.json.Decoder(_Line)


def read_rows(run: Path) -> tuple[IndexRow, ...]:
    """Every prediction of a run in short, finished or not; empty if there is none yet."""
    return _ordered(_read_ledger(run) if is_unsettled(run) else _read_predictions(run))


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
    names = ("run.json", PREDICTIONS_FILE, LEDGER, f"{LEDGER}-wal")
    return tuple(part for name in names for part in _stamp_file(run / name))


def _stamp_file(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _read_predictions(run: Path) -> list[_Line]:
    path = run / PREDICTIONS_FILE
    with open_for_reading(path) as stream:
        data = stream.read()
    try:
        return _lines.decode_lines(data)
    except msgspec.MsgspecError:
        # Once more line by line, which is slower and names the line that is no prediction. They end at line feeds only:
        # texts may contain other characters that Python treats as line ends.
        return [_read_line(line, number, path) for number, line in enumerate(data.split(b"\n"), start=1) if line]


def _read_line(line: bytes, number: int, path: Path) -> _Line:
    try:
        return _lines.decode(line)
    except msgspec.MsgspecError as error:
        raise DataError(
            f"not a prediction: {error}", file=path, row=number, remedy="run the same command again"
        ) from None


def _read_ledger(run: Path) -> list[_Line]:
    if not (run / LEDGER).is_file():
        return []
    with closing(Records.open(run)) as records:
        return list(records.predictions_as(_Line))


def _ordered(lines: Iterable[_Line]) -> tuple[IndexRow, ...]:
    return tuple(sorted(map(_row, lines), key=lambda row: (row.case, row.sample)))


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
