"""A submission's predictions for everybody, where its team allows that: its own words, and nothing else of the file.

An upload may carry all released columns, the withheld ones among them: only what the model wrote is given out.
"""

from collections.abc import Iterator

import msgspec

from medthink.board.records import SubmissionRecord, open_file
from medthink.board.store import BoardStore
from medthink.core.jsonio import encode_json, read_jsonl
from medthink.runs.prediction import TwiSteps

_GIVEN = ("title", "case", "sample", "prediction", "prediction_rationale", "state")


def public_predictions(store: BoardStore, submission: SubmissionRecord) -> bytes:
    """The predictions as JSON Lines: case, letter, rationale and steps."""
    with open_file(store, submission) as path:
        return b"".join(encode_json(line) + b"\n" for line in _lines(row.value for row in read_jsonl(path)))


def _lines(rows: Iterator[dict[str, object]]) -> Iterator[dict[str, object]]:
    for row in rows:
        line = {name: row[name] for name in _GIVEN if isinstance(row.get(name), str | int | None) and name in row}
        steps = row.get("prediction_twi")
        if steps is not None:
            line["prediction_twi"] = msgspec.to_builtins(msgspec.convert(steps, TwiSteps))
        yield line
