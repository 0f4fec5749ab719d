"""The board as public data: JSON, CSV and Parquet, with nothing that is not public.

It contains no token, and no letter or reference of any case.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from medthink.board.ranking import BoardRow, Leaderboard
from medthink.board.submissions import LISTED, SubmissionRecord, open_file
from medthink.cases.case import Case
from medthink.core.jsonio import encode_json, read_jsonl
from medthink.core.tables import csv_text
from medthink.metrics.registry import shown_in
from medthink.scoring.scores import informative_slices
from medthink.scoring.submission_file import read_submission
from medthink.stats.estimate import Measured, ends_of
from medthink.store.engine import Store
from medthink.workflow.prediction import Prediction, TwiSteps

DOWNLOADS = {
    "csv": ("leaderboard.csv", "text/csv"),
    "json": ("leaderboard.json", "application/json"),
    "parquet": ("leaderboard.parquet", "application/vnd.apache.parquet"),
}
"""The board's export formats: file name and media type."""

# Text columns stay text even if every value is missing.
_TEXTS = frozenset(
    {"ranking", "ties", "model", "team", *LISTED, "task", "condition", "rival", "provenance"}
    | {"judge", "note", "published_at", "withdrawn_at", "withdrawn_why", "annotation", "flag"}
)


def export_board(made: Leaderboard, form: str) -> bytes:
    """The complete board in one of the formats."""
    rows = [plain_row(row) for row in made.every_row()]
    if form == "json":
        slices = [plain_slices(row) for row in made.every_row()]
        listed = [row | {"slices": parts} for row, parts in zip(rows, slices, strict=True)]
        head = {"benchmark": msgspec.to_builtins(made.benchmark), "as_of": made.as_of}
        return encode_json(head | {"rivals": msgspec.to_builtins(made.rivals), "rows": listed})
    wide = _with_slices(rows, made.every_row())
    return _csv(wide) if form == "csv" else _parquet(wide)


def plain_row(row: BoardRow) -> dict[str, Any]:
    """The public fields of a row, as plain data."""
    one = row.submission
    return {
        "number": one.id,
        "ranking": row.kind,
        "rank": row.rank,
        "worst_rank": row.worst,
        "tie_group": row.group,
        "ties": " ".join(row.letters),
        "model": one.model,
        "team": one.team,
        **{name: getattr(one.about, name) for name in LISTED},
        "task": row.scores.origin.task,
        "condition": row.scores.origin.condition_label,
        **_plain_accuracy(row),
        **_plain_gain(row),
        **_plain_usage(row),
        **_plain_steps(row),
        **_plain_proof(row),
        "is_expert_cued": row.kind == "cued",
        "published_at": one.published_at,
        "withdrawn_at": one.withdrawn_at,
        "withdrawn_why": one.reason if row.is_withdrawn else "",
        "note": one.detail,
        "annotation": one.annotation,
        "flag": one.flag,
        "submissions_by_team": row.by_team,
        "submissions_by_family": row.by_family,
    }


def _plain_accuracy(row: BoardRow) -> dict[str, Any]:
    answers = row.scores.answers
    states = answers.states if answers else {}
    return {
        **_spread("accuracy", answers.accuracy if answers else None),
        "cases": len(row.result.cases),
        "without_letter": sum(count for state, count in states.items() if state != "ok"),
    }


def _plain_gain(row: BoardRow) -> dict[str, Any]:
    found = row.gain
    return {
        **_spread("gain", found.gain if found else None),
        "rival": found.rival if found else None,
        "rival_accuracy": found.rival_accuracy.value if found else None,
        "has_own_blind_rival": found.has_own_blind if found else None,
    }


def _plain_usage(row: BoardRow) -> dict[str, Any]:
    usage, cases = row.scores.usage, len(row.result.cases)
    return {
        "usd_per_case": usage.cost_usd.per(cases) if usage else None,
        "input_tokens_per_case": usage.input_tokens.per(cases) if usage else None,
        "output_tokens_per_case": usage.output_tokens.per(cases) if usage else None,
    }


def _plain_steps(row: BoardRow) -> dict[str, Any]:
    """Scores of steps 1 and 2 against the expert's text, and the judged profile, under the same names for every row."""
    known = {(step.step, one.metric): one.value for step in row.scores.steps for one in step.metrics}
    values = {
        f"{step}_{metric.name}": found.value if (found := known.get((step, metric.name))) else None
        for step in ("findings", "summary")
        for metric in shown_in("tables")
    }
    judged = row.judged.leading if row.judged else None
    return {
        **values,
        "judge": judged.judge if judged else None,
        "wrong_critical_steps": judged.wrong_critical_steps.value if judged else None,
    }


def _plain_proof(row: BoardRow) -> dict[str, Any]:
    again = row.rerun
    return {
        "provenance": row.submission.provenance,
        "rerun_cases": again.cases if again else None,
        "rerun_same": again.same if again else None,
        "rerun_most_differing": again.most if again else None,
        "rerun_bound": again.bound if again else None,
    }


def plain_slices(row: BoardRow) -> list[dict[str, Any]]:
    """The slices of a row, as plain data."""
    return [
        {"by": part.by, "value": part.value, "cases": part.n, **_spread("accuracy", part.accuracy)}
        for part in informative_slices(row.scores)
    ]


def _spread(name: str, measured: Measured | None) -> dict[str, float | None]:
    ends = ends_of(measured) or (None, None)
    return {name: measured.value if measured else None, f"{name}_low": ends[0], f"{name}_high": ends[1]}


def _with_slices(plain: list[dict[str, Any]], rows: Sequence[BoardRow]) -> list[dict[str, Any]]:
    """The rows with a column for each slice; every row has all of them."""
    values = [
        {f"{part.by} = {part.value}": part.accuracy.value for part in informative_slices(row.scores)} for row in rows
    ]
    names = list(dict.fromkeys(name for one in values for name in one))
    return [row | {name: one.get(name) for name in names} for row, one in zip(plain, values, strict=True)]


def _csv(rows: list[dict[str, Any]]) -> bytes:
    return csv_text(list(rows[0]), rows).encode() if rows else b""


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(rows[0]) if rows else []
    table = pa.table({name: pa.array([row[name] for row in rows], _arrow_type(name, rows)) for name in names})
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="zstd")
    return stream.getvalue()


def _arrow_type(name: str, rows: list[dict[str, Any]]) -> Any:
    """The column's type, the same whether or not the first rows have a value."""
    import pyarrow as pa

    if name in _TEXTS:
        return pa.string()
    kinds = {type(row[name]) for row in rows if row[name] is not None}
    if kinds == {bool}:
        return pa.bool_()
    return pa.int64() if kinds == {int} else pa.float64()


_GIVEN = ("title", "case", "sample", "prediction", "prediction_rationale", "state")


def public_predictions(store: Store, submission: SubmissionRecord) -> bytes:
    """The predictions as JSON Lines: case, letter, rationale and steps."""
    with open_file(store, submission) as path:
        return b"".join(encode_json(line) + b"\n" for line in _lines(row.value for row in read_jsonl(path)))


def read_model_texts(store: Store, submission: SubmissionRecord, cases: Mapping[int, Case]) -> dict[int, Prediction]:
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
