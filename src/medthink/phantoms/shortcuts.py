"""Two leaks planted on purpose: the right option tends to be the longest, and some histories name it."""

from random import Random
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]

LONGEST_SHARE = 0.7
HISTORY_SHARE = 0.25
_TAILS = (
    "with typical imaging features and an unremarkable family history",
    "in its classical form with characteristic involvement",
    "confirmed by a characteristic appearance on imaging",
)
_MENTIONS = (
    "The referring physician already suspected {name}.",
    "There was a known history of {name}.",
    "The patient was a known case of {name}.",
)


def plant_shortcuts(row: Row, chance: Random) -> Row:
    """The row with both leaks, each in its share of the cases."""
    planted = dict(row)
    if chance.random() < HISTORY_SHARE:
        planted["CLINICAL_HISTORY"] += " " + chance.choice(_MENTIONS).format(name=row["correct_answer_text"])
    return planted | lengthen_answer(row, chance.choice(_TAILS)) if chance.random() < LONGEST_SHARE else planted


def lengthen_answer(row: Row, tail: str) -> Row:
    """The fields that state the right option, with a tail on it."""
    text = f"{row['correct_answer_text']} {tail}"
    return {"options": row["options"] | {row["correct_answer"]: text}, "correct_answer_text": text}
