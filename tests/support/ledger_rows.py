"""What stands in a ledger, read as any other program would."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from medthink.core.digest import digest_bytes
from medthink.runs.ledger.schema import add_digests


def read_rows(ledger: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows that a query gives; the file is closed again, which newer Pythons insist on."""
    with closing(sqlite3.connect(ledger)) as connection:
        return connection.execute(query).fetchall()


def alter(ledger: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    """Change a ledger as MedThink itself would have: its rows carry digests that fit."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        add_digests(connection)
        for statement in statements:
            connection.execute(statement, values)
        connection.execute(
            "UPDATE calls SET digest = digest_of(key, case_id, kind, request, state, iif(state = 'done', reply, NULL),"
            " iif(state = 'failed', error_kind, NULL))"
        )
        connection.execute(
            "UPDATE attempts SET digest ="
            " digest_of(call_key, number, endpoint, outcome, is_sent, latency_s, usage, cost_usd, is_least, saved_usd)"
        )
        connection.execute("UPDATE predictions SET digest = digest_of(case_id, sample, state, body)")


def replace_predictions(run: Path, data: bytes) -> None:
    """Give a run other predictions, as if it had written them itself."""
    (run / "predictions.jsonl").write_bytes(data)
    manifest = json.loads((run / "run.json").read_bytes())
    if manifest["progress"] is not None:
        manifest["progress"]["predictions_digest"] = digest_bytes(data)
    (run / "run.json").write_text(json.dumps(manifest))
