"""Tables as plain cells: the same rows on the page, under a figure and in a paper."""

from collections.abc import Sequence

from medthink.core.markup import Markup, Table, tag
from medthink.core.numbers import as_count, as_points, as_points_and_ends
from medthink.metrics.registry import shown_in
from medthink.report.runs import ComparableGroup, ReportRun, answer_pairs
from medthink.scoring.scores import MetricScore, Scores, cost_text, rate_text, value_text
from medthink.scoring.tables import unanswered_text
from medthink.stats.comparisons.ranks import RankedPair
from medthink.stats.estimate import Measured, Undefined, ends_of, rank_range, value_of
from medthink.workflow.written_text import WrittenText

_NOT_COMPUTED = "not computed"
_NO_VALUE = {"–", _NOT_COMPUTED}


def table_markup(table: Table, *, name: str) -> Markup:
    """The table in a box that scrolls if it is too wide; the first cell of a row is its header."""
    head = tag("tr", *(tag("th", cell, scope="col", class_=_align(table, i)) for i, cell in enumerate(table.columns)))
    rows = (
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", cell, class_=_cell_class(table, place, i)) for i, cell in enumerate(row) if i),
        )
        for place, row in enumerate(table.rows)
    )
    body = tag("table", tag("thead", head), tag("tbody", *rows))
    return tag("div", body, class_="box", role="region", aria_label=name, tabindex=0)


def headline_table(group: ComparableGroup) -> Table:
    """One row per run: accuracy over all cases, rank range, unreadable replies, usage.

    Columns without information (accuracy of those answered, when all were) are left out.
    """
    places = {entry.label: place for entry, place in group.ranked()}
    rows = []
    for entry, answers in answer_pairs(group.entries):
        place = places.get(entry.label)
        rows.append(
            (
                entry.label,
                rate_text(answers.accuracy),
                rank_range(place.rank, place.worst) if place else "–",
                str(place.tier) if place else "–",
                f"{answers.n_predictions:,}",
                unanswered_text(answers.states),
                rate_text(answers.accuracy_answered),
                as_count(tokens_per_case(entry)),
                cost_text(entry.scores.usage),
            )
        )
    columns = ("Run", "Accuracy (95 % interval)", "Rank", "Tier", "Predictions", "No letter", "Of those answered")
    table = Table((*columns, "Output tokens per case", "Cost"), tuple(rows), frozenset({1, 2, 3, 4, 6, 7, 8}))
    idle = {2, 3} if group.ranking is None else set()
    if all(row[5] == "–" for row in rows):
        idle |= {6}
    if all(row[7] == "–" for row in rows):
        idle |= {7}
    return without_columns(table, idle)


def steps_table(entries: Sequence[ReportRun], texts: Sequence[WrittenText]) -> Table | None:
    """One row per run and step with the metrics that apply; None if no run wrote any."""
    rows, metrics = [], shown_in("tables")
    written = [(entry, step) for entry in entries for step in entry.scores.steps]
    for text in texts:
        for entry, step in (pair for pair in written if pair[1].step == text.name):
            found = {metric.metric: metric for metric in step.metrics}
            cells = (_metric_text(found.get(metric.name)) for metric in metrics)
            scored, rest = step.states.get("ok", 0), sum(step.states.values()) - step.states.get("ok", 0)
            rows.append((entry.label, text.title, f"{scored:,}", f"{rest:,}", *cells))
    if not rows:
        return None
    columns = ("Run", "Text", "Scored", "Without score", *(metric.title for metric in metrics))
    table = Table(columns, tuple(rows), frozenset(range(2, len(columns))))
    return without_columns(table, {i for i in range(4, len(columns)) if {row[i] for row in rows} <= _NO_VALUE})


def without_columns(table: Table, idle: set[int]) -> Table:
    """The table without these columns."""
    kept = [i for i in range(len(table.columns)) if i not in idle]
    return Table(
        columns=tuple(table.columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in table.rows),
        numeric=frozenset(place for place, i in enumerate(kept) if i in table.numeric),
        wordy=frozenset(place for place, i in enumerate(kept) if i in table.wordy),
    )


def metric_value(scores: Scores, step: str, metric: str) -> Measured | None:
    """One metric of one step."""
    found = (one.value for part in scores.steps if part.step == step for one in part.metrics if one.metric == metric)
    return next(found, None)


def tokens_per_case(entry: ReportRun) -> float | None:
    """Mean output tokens per case, including thinking; None if a provider did not count them or nothing was written."""
    usage = entry.scores.usage
    if usage is None or not usage.output_tokens.value:
        return None
    return usage.output_tokens.value / len({one.case for one in entry.material.predictions})


def _metric_text(metric: MetricScore | None) -> str:
    if metric is None:
        return "–"
    # The reason for a missing value or interval would make the column too wide; `scores.json` has it.
    if metric.not_computed:
        return _NOT_COMPUTED
    if isinstance(metric.value, Undefined) and metric.value.value is not None:
        return f"{metric.value.value:.3f} (no interval)"
    return value_text(metric.value)


def _align(table: Table, index: int) -> str | None:
    return "number" if index in table.numeric else "words" if index in table.wordy else None


def _cell_class(table: Table, row: int, index: int) -> str | None:
    """The class of a cell; numbers that do not count are grey."""
    align = _align(table, index)
    return f"{align} uncounted" if align == "number" and row in table.grey else align


_MEANING = (
    "The run of the row minus the run of the column, in points of accuracy. ▲ and ▼: better and worse; ≈: not "
    "distinguishable on these cases. All pairs are tested as one family: the chance that any two equal runs are called "
    "different is at most 5 %."
)
MOST_RUNS = 24


def pairwise_markup(group: ComparableGroup) -> Markup | None:
    """A matrix of the ranked runs, best first; None if there are fewer than two, or too many to read."""
    ranked = list(group.ranked())
    if group.ranking is None or not 2 <= len(ranked) <= MOST_RUNS:
        return None
    pairs = {(pair.a, pair.b): (pair, 1) for pair in group.ranking.pairs}
    pairs |= {(pair.b, pair.a): (pair, -1) for pair in group.ranking.pairs}
    numbers = [tag("th", str(number), scope="col", title=entry.label) for number, (entry, _) in enumerate(ranked, 1)]
    head = tag("tr", tag("th", "Run", scope="col"), *numbers)
    rows = (
        tag(
            "tr",
            tag("th", f"{number} {entry.label}", scope="row"),
            *(_cell(*pairs[place.run, other.run]) if place is not other else tag("td", "") for _, other in ranked),
        )
        for number, (entry, place) in enumerate(ranked, 1)
    )
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="pairwise")
    box = tag("div", table, class_="box", role="region", aria_label="Differences between runs", tabindex=0)
    return tag("div", box, tag("p", _MEANING, class_="soft small"))


def _cell(pair: RankedPair, sign: int) -> Markup:
    value, ends = value_of(pair.difference), ends_of(pair.difference)
    if value is None:
        return tag("td", "–", class_="same")
    kind, mark = "same", "≈"
    if pair.is_different:
        kind, mark = ("better", "▲") if value * sign > 0 else ("worse", "▼")
    shown, told = as_points(value * sign), None
    if ends:
        shown, between = as_points_and_ends(value * sign, *sorted(end * sign for end in ends))
        told = f"{between} points"
    return tag("td", f"{shown} ", tag("span", mark, class_="mark"), class_=kind, title=told)
