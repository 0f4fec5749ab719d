"""Readings in the published form: a row for each reader and case, with the columns of its steps side by side.

That form is coarser than ours: unverifiable is an empty cell, decisive and contributory are both critical, and there is
no column for severity, corrections, or anything but steps.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from medthink.judge.units import UnitKey, UnitSet
from medthink.readers.readings import Reading

STEPS = "steps"


class PublishedTable(NamedTuple):
    """The columns and rows of the published form, and how many readings have no column in it."""

    columns: tuple[str, ...]
    rows: list[dict[str, str]]
    left_out: int


def publish_readings(readings: Iterable[Reading], units: Mapping[UnitKey, UnitSet]) -> PublishedTable:
    """Every reader's labels of the steps of each case; a step that a reader left open has empty cells.

    `unitN` gives each step's id, so that the table can be read back even if two steps have the same words.
    """
    texts = [one for key, one in sorted(units.items()) if key[2] == STEPS and one.state == "ok"]
    known = {unit for one in texts for unit in one.ids}
    by_reader: dict[str, dict[str, Reading]] = {}
    left_out = 0
    for one in readings:
        if one.unit in known:
            by_reader.setdefault(one.reader, {})[one.unit] = one
        else:
            left_out += 1
    rows = [
        _row(reader, text, own)
        for reader, own in sorted(by_reader.items())
        for text in texts
        if any(unit in own for unit in text.ids)
    ]
    most = max((len(text.units) for text in texts), default=0)
    names = ("step", "unit", "human_factual", "human_critical", "human_error_types")
    columns = ("title", "reader", *(f"{name}{number}" for number in range(1, most + 1) for name in names))
    return PublishedTable(columns, rows, left_out)


def _row(reader: str, text: UnitSet, own: Mapping[str, Reading]) -> dict[str, str]:
    row = {"title": f"Case number {text.case}", "reader": reader}
    for number, unit in enumerate(text.units, start=1):
        row |= {f"step{number}": unit.text, f"unit{number}": unit.id}
        if unit.id in own:
            row |= {f"human_{name}{number}": cell for name, cell in _cells(own[unit.id]).items()}
    return row


def _cells(reading: Reading) -> dict[str, str]:
    labels = reading.labels
    is_open = labels.get("support") == "unverifiable"
    return {
        "factual": "" if is_open else _yes_or_no(labels.get("factual")),
        "critical": _yes_or_no(labels.get("critical")),
        "error_types": "; ".join(name.replace("_", " ") for name in reading.error_types),
    }


def _yes_or_no(label: object) -> str:
    return "" if label is None else "yes" if label else "no"
