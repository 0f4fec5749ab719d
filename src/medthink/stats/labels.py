"""Labels of any kind as numbers."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from medthink.stats.clusters import Ints

Label = str | int | bool
LabelColumn = Sequence[Label] | npt.NDArray[np.generic]


def code_labels(labels: Sequence[Label | None], categories: Sequence[Label]) -> Ints:
    """Each label's place among the categories, −1 for a missing one (None); any other is a ValueError."""
    places: dict[Label | None, int] = {label: k for k, label in enumerate(categories)}
    if len(places) != len(categories):
        raise ValueError("categories must differ")
    try:
        return np.array([-1 if label is None else places[label] for label in labels], dtype=np.int64)
    except KeyError as error:
        raise ValueError(f"label {error.args[0]!r} is not one of the categories {list(categories)}") from None


def known_categories(labels: set[Label], categories: Sequence[Label] | None) -> tuple[Label, ...]:
    """The categories given, or else those that occur, sorted."""
    if categories is not None:
        return tuple(categories)
    try:
        return tuple(sorted(labels))
    except TypeError:
        raise ValueError("labels of mixed types have no order; give the categories") from None


def _plain(labels: LabelColumn) -> list[Label]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def paired_codes(
    a: LabelColumn, b: LabelColumn, categories: Sequence[Label] | None
) -> tuple[Ints, Ints, tuple[Label, ...]]:
    """Both raters' labels as places among the categories, and the categories."""
    first, second = _plain(a), _plain(b)
    if len(first) != len(second):
        raise ValueError(f"a has {len(first)} rows and b has {len(second)}; they must pair up")
    if None in first or None in second:
        raise ValueError("a row has no label; leave it out of both, or use panel_agreement")
    known = known_categories({*first, *second}, categories)
    codes = code_labels([*first, *second], known)
    return codes[: len(first)], codes[len(first) :], known
