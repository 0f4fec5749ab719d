"""A submission's public predictions, if its team allows it: the model's own words, and nothing else in the file.

An upload may contain all released columns, including withheld ones: only what the model wrote is published.
"""

from collections.abc import Iterator, Mapping

import msgspec

from medthink.board.records import SubmissionRecord, open_file
from medthink.board.store import BoardStore
from medthink.cases.case import Case
from medthink.core.jsonio import encode_json, read_jsonl
from medthink.runs.prediction import Prediction, TwiSteps
from medthink.scoring.submission import read_submission

_GIVEN = ("title", "case", "sample", "prediction", "prediction_rationale", "state")


def public_predictions(store: BoardStore, submission: SubmissionRecord) -> bytes:
    """The predictions as JSON Lines: case, letter, rationale and steps."""
    with open_file(store, submission) as path:
        return b"".join(encode_json(line) + b"\n" for line in _lines(row.value for row in read_jsonl(path)))


def read_words(store: BoardStore, submission: SubmissionRecord, cases: Mapping[int, Case]) -> dict[int, Prediction]:
    """The predictions by case, the first sample of each; answer keys in the file are not read."""
    with open_file(store, submission) as path:
        found = read_submission(path, cases).predictions
    return {one.case: one for one in reversed(found)}


def _lines(rows: Iterator[dict[str, object]]) -> Iterator[dict[str, object]]:
    for row in rows:
        line = {name: row[name] for name in _GIVEN if isinstance(row.get(name), str | int | None) and name in row}
        steps = row.get("prediction_twi")
        if steps is not None:
            line["prediction_twi"] = msgspec.to_builtins(msgspec.convert(steps, TwiSteps))
        yield line
