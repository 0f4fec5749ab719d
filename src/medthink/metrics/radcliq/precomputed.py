"""Components and RadGraph annotations computed elsewhere, read from a file.

A table is CSV, XLSX, JSON Lines or JSON: `id, radgraph, bertscore, semb, bleu2` (also `bleu`). Annotations are JSON:
`{"references": {id: annotation}, "candidates": {id: annotation}}`, in the form the RadGraph package writes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medthink.core.errors import DataError
from medthink.core.files import open_for_reading
from medthink.core.jsonio import parse_json
from medthink.core.tables import read_raw
from medthink.metrics.radcliq.composite import Advance, Components, ComponentScores, ignore_progress
from medthink.metrics.radcliq.radgraph import radgraph_f1, read_annotations
from medthink.metrics.radcliq.score import FIELDS
from medthink.metrics.radcliq.weights import digest_weights


def read_components(path: Path) -> dict[str, Components]:
    """The components of every pair, by its id."""
    components: dict[str, Components] = {}
    for number, row in _read_json(path) if path.suffix == ".json" else read_raw(path):
        key = _field(row, "id", path, number)
        if key in components:
            raise DataError(f"id {key!r} occurs twice", file=path, row=number, field="id")
        components[str(key)] = Components(**{name: _number(row, name, path, number) for name in FIELDS})
    return components


def _read_json(path: Path) -> Iterable[tuple[int, Mapping[str, Any]]]:
    with open_for_reading(path) as stream:
        rows = parse_json(stream.read(), file=path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError("not a list of objects", file=path, remedy='write [{"id": …, "radgraph": …, …}, …]')
    return enumerate(rows, start=1)


def _field(row: Mapping[str, Any], name: str, path: Path, number: int) -> Any:
    value = row.get(name, row.get("bleu") if name == "bleu2" else None)
    if value is None or value == "":
        raise DataError("is missing", file=path, row=number, field=name, remedy=f"give every pair its {name}")
    return value


def _number(row: Mapping[str, Any], name: str, path: Path, number: int) -> float:
    value = _field(row, name, path, number)
    try:
        result = float(value)
    except (TypeError, ValueError):
        result = math.nan
    if not math.isfinite(result):
        raise DataError(f"not a number: {value!r}", file=path, row=number, field=name)
    return result


class AnnotatedRadGraph:
    """RadGraph F1 as a component, from annotations in a file; pairs are taken by their ids."""

    name = "radgraph"

    def __init__(self, path: Path, ids: Mapping[tuple[str, str], str]) -> None:
        """`ids` maps the two texts of a pair to its id in the file."""
        self._path = path
        self._ids = ids
        with open_for_reading(path) as stream:
            value = parse_json(stream.read(), file=path)
        if not isinstance(value, dict) or not {"references", "candidates"} <= value.keys():
            raise DataError("not an object with references and candidates", file=path)
        self._references = read_annotations(value["references"], file=path)
        self._candidates = read_annotations(value["candidates"], file=path)

    def unavailable(self) -> str | None:
        """Which annotation is missing, or None."""
        wanted = set(self._ids.values())
        missing = sorted(wanted - (self._references.keys() & self._candidates.keys()))
        return f"no annotation of {missing[0]} in {self._path.name}" if missing else None

    def score(
        self, references: Sequence[str], candidates: Sequence[str], advance: Advance = ignore_progress
    ) -> ComponentScores:
        """RadGraph F1 of every pair."""
        advance(len({*references, *candidates}))
        ids = [self._ids[pair] for pair in zip(references, candidates, strict=True)]
        return ComponentScores([radgraph_f1(self._references[key], self._candidates[key]) for key in ids], [])

    def fingerprint(self) -> dict[str, str]:
        """The file by digest."""
        return {"source": "annotations from a file", **digest_weights(self._path)}
