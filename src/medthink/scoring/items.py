"""A benchmark's cases over many runs: hard ones, ones that separate the leaders, keys worth a second look."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from medthink.core.errors import UsageError
from medthink.metrics.answers import most_frequent
from medthink.scoring.compare import Comparison
from medthink.scoring.scores import Scores
from medthink.stats.items import ItemTable, SuspectKeys, item_table, suspect_keys


class ItemView(msgspec.Struct, frozen=True, kw_only=True):
    """Difficulty and discrimination by case, one vote per model, and the reading list of suspect keys.

    `suspects` is None where fewer than six models are compared; `vendors` counts the voters' vendors, and is None if a
    file of predictions, which does not state its vendor, is among them.
    """

    models: tuple[str, ...]
    table: ItemTable
    suspects: SuspectKeys | None
    vendors: int | None


def view_items(scored: Sequence[Scores], comparison: Comparison) -> ItemView:
    """The item view of runs that were compared; several runs of one model are averaged to its one vote."""
    if comparison.ranking is None:
        raise UsageError("viewing items needs at least three runs of one kind", remedy="name more runs")
    by_model: dict[str, list[Scores]] = {}
    for one in scored:
        by_model.setdefault(one.origin.model, []).append(one)
    models = sorted(by_model)
    ids = [case.case for case in scored[0].cases]
    means = np.array(
        [np.mean([[case.right for case in one.cases] for one in by_model[model]], axis=0) for model in models]
    )
    leading = {scored[place.run].origin.model for place in comparison.ranking.runs if place.is_leader}
    suspects = suspect_keys(
        {model: _votes(by_model[model]) for model in models},
        {case.case: case.gold for case in scored[0].cases},
        accuracies=dict(zip(models, means.mean(axis=1).tolist(), strict=True)),
    )
    return ItemView(
        models=tuple(models),
        table=item_table(means, cases=ids, leaders=[k for k, model in enumerate(models) if model in leading]),
        suspects=suspects,
        vendors=_vendors(suspects.voters if suspects else (), by_model),
    )


def _vendors(voters: Sequence[str], by_model: Mapping[str, Sequence[Scores]]) -> int | None:
    if any(one.origin.condition is None for model in voters for one in by_model[model]):
        return None
    return len({model.partition("/")[0] for model in voters})


def _votes(runs: Sequence[Scores]) -> dict[int, str | None]:
    """A model's most frequent letter for each case; None if there is a tie or no answer."""
    given: dict[int, list[str]] = {}
    for one in runs:
        for case in one.cases:
            given.setdefault(case.case, []).extend(letter for letter in case.letters if letter is not None)
    return {case: most_frequent(letters) for case, letters in given.items()}
