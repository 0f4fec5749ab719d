"""`judgements.jsonl`: one line for each prediction, kind, judge and repeat."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from medthink.core.errors import DataError
from medthink.core.jsonio import read_jsonl, write_jsonl
from medthink.judge.judgement import Judgement
from medthink.judge.kinds import KINDS

JUDGEMENTS_FILE = "judgements.jsonl"


def read_judgements(run: Path) -> list[Judgement]:
    """The judgements of a run; empty if it was never judged."""
    path = run / JUDGEMENTS_FILE
    if not path.exists():
        return []
    found = []
    for line in read_jsonl(path):
        try:
            found.append(_read(line.value))
        except msgspec.ValidationError as error:
            raise DataError(
                f"not a judgement: {error}", file=path, row=line.number, remedy="run medthink judge again"
            ) from None
    return found


def write_judgements(run: Path, judgements: Iterable[Judgement]) -> None:
    """Write the judgements in order; the same judgements give the same bytes."""
    rows = sorted(judgements, key=lambda one: one.order)
    if rows:
        write_jsonl(run / JUDGEMENTS_FILE, (msgspec.to_builtins(row) for row in rows))


def merge_judgements(old: Iterable[Judgement], new: Iterable[Judgement]) -> list[Judgement]:
    """All judgements; a new one replaces the old one it repeats."""
    return list({one.order: one for one in [*old, *new]}.values())


def _read(value: Any) -> Judgement:
    row = msgspec.convert(value, dict[str, Any])
    verdicts = msgspec.convert(row.pop("verdicts", ()), tuple[dict[str, Any], ...])
    judgement = msgspec.convert(row, Judgement)
    if judgement.what not in KINDS:
        raise msgspec.ValidationError(f"`{judgement.what}` is not one of {', '.join(KINDS)}")
    return msgspec.structs.replace(judgement, verdicts=KINDS[judgement.what].read_stored(verdicts))
