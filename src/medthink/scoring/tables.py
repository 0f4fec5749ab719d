"""Tables of scores, as plain cells, shown in the terminal and in notebooks alike."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from medthink.core.files import short_names
from medthink.core.markup import Markup, Table, fold_section, html_table, joined, tag
from medthink.core.numbers import NOTHING, as_p_value, as_percent
from medthink.metrics.registry import Metric, shown_in
from medthink.scoring.compare import Comparison, SampledRuns
from medthink.scoring.scores import MetricScore, Scores, TextScores, cost_text, difference_text, rate_text, value_text
from medthink.stats.estimate import rank_range

Row = tuple[str, ...]

# With more runs than this, letters are harder to read than ranges.
MOST_LETTERED = 12


TIERS_MEANING = "Every run of a tier is shown to be better (95 %) than all of the next; within a tier no claim is made."
"""Said only where there are two tiers or more."""


class RivalColumns(NamedTuple):
    """Shown next to a run's accuracy: the strongest rival that sees no image, and the gain over it."""

    rival: str
    gain: str


def headline_table(scored: Sequence[Scores], beside: Mapping[str, RivalColumns] | None = None) -> Table:
    """Accuracy, the strongest rival and the gain over it where known (by run), states and cost, one row per run."""
    between = () if beside is None else ("strongest rival", "gain")
    columns = ("run", "n", "accuracy (95 %)", *between, "of answered", "states", "cost")
    rows = []
    for one in scored:
        name, n, accuracy, *rest = _headline(one)
        known = () if beside is None else beside.get(one.origin.name, RivalColumns("–", "–"))
        rows.append((name, n, accuracy, *known, *rest))
    return Table(columns, tuple(rows), frozenset({1}), title="Scores")


def steps_table(scored: Sequence[Scores]) -> Table:
    """The metrics of the written steps that are shown in tables, for several runs side by side."""
    found = {metric.metric for one in scored for step in one.steps for metric in step.metrics if metric.value}
    metrics = [metric for metric in shown_in("tables") if metric.name in found]
    columns = ("run", "step", "texts", *(f"{metric.label or metric.name} {_arrow(metric)}" for metric in metrics))
    rows = [(one.origin.name, step.step, *_key_metrics(step, metrics)) for one in scored for step in one.steps]
    title = "Written steps, mean over cases (95 %); a missing text counts as an empty one"
    return Table(columns, tuple(rows), title=title)


def step_table(step: TextScores) -> Table:
    """Every metric of one written step; no rows if no text could be scored."""
    states = ", ".join(f"{count} {state}" for state, count in step.states.items()) or "no images shown"
    is_whole = not any(step.states.get(state) for state in ("missing", "empty"))
    beside = () if is_whole else ("of those written (95 %)",)
    rows = [
        (metric.metric, _arrow(metric), _mean(metric), *(value_text(metric.of_written) for _ in beside))
        for metric in step.metrics
    ]
    columns = ("metric", "", "mean over cases (95 %)", *beside)
    return Table(columns, tuple(rows) if step.states.get("ok") else (), title=f"{step.step} ({states})")


def slices_table(one: Scores) -> Table:
    """Accuracy by slice."""
    rows = [
        (part.by, part.value, str(part.n), rate_text(part.accuracy), "small" if part.is_small else "")
        for part in one.slices
    ]
    return Table(("by", "slice", "n", "accuracy (95 %)", ""), tuple(rows), frozenset({2}), title="by slice")


def repeats_line(one: Scores) -> str:
    """Several answers per case: how far they agree, and the majority vote; "" if there is only one."""
    answers = one.answers
    if answers is None or answers.repeats is None:
        return ""
    agreeing = "–" if answers.consistency is None else as_percent(answers.consistency)
    return (
        f"{answers.n_predictions} answers to {answers.n_cases} cases; "
        f"two answers to the same case agree in {agreeing}; majority vote {rate_text(answers.majority)}"
    )


def pairs_table(comparison: Comparison) -> Table:
    """The difference of every pair of runs."""
    rows = [
        (
            f"{pair.a} − {pair.b}",
            difference_text(pair.difference),
            f"{len(pair.won)} : {len(pair.lost)}",
            as_p_value(pair.p_value, comparison.p_floor),
            "yes" if pair.is_different else "not shown",
        )
        for pair in comparison.pairs
    ]
    columns = ("pair", "difference (95 %)", "won : lost", "p (all pairs)", "different?")
    return Table(columns, tuple(rows), title="Accuracy, paired by case")


def ranking_table(comparison: Comparison) -> Table:
    """The rank of every run as a range; no rows if there is no ranking."""
    ranked = comparison.ranking.runs if comparison.ranking else ()
    has_letters = len(ranked) <= MOST_LETTERED
    rows = [
        (
            rank_range(one.rank, one.worst),
            comparison.runs[one.run],
            rate_text(one.mean),
            "yes" if one.is_leader else "",
            *([" ".join(one.letters)] if has_letters else ()),
            str(one.tier),
            unanswered_text(comparison.states.get(comparison.runs[one.run], {})),
        )
        for one in ranked
    ]
    columns = ("rank", "run", "accuracy (95 %)", "leader", *(["letters"] if has_letters else ()), "tier", "no letter")
    return Table(columns, tuple(rows), title="Ranks (95 % range)")


def ranking_note(comparison: Comparison) -> str:
    """An explanation of leaders, letters and tiers, in the order of the table's columns."""
    ranked = comparison.ranking.runs if comparison.ranking else ()
    lettered = "Runs that share a letter are not distinguishable. " if len(ranked) <= MOST_LETTERED else ""
    tiers = f"{TIERS_MEANING} " if len({one.tier for one in ranked}) > 1 else ""
    return (
        "Leaders: no run is shown to be better; the best run is among them with 95 % confidence. "
        f"{lettered}{tiers}Not distinguishable means that these cases do not show which is better, not that the runs "
        "are equal."
    )


def with_short_names(comparison: Comparison) -> Comparison:
    """The comparison with each run named by the last part of its path, if that is unique."""
    names = short_names(comparison.runs)
    pairs = tuple(replace(pair, a=names[pair.a], b=names[pair.b]) for pair in comparison.pairs)
    partial = {names[run]: how_far for run, how_far in comparison.partial.items()}
    states = {names[run]: counts for run, counts in comparison.states.items()}
    samples = tuple(replace(one, runs=tuple(names[run] for run in one.runs)) for one in comparison.samples)
    return replace(
        comparison,
        runs=tuple(names[run] for run in comparison.runs),
        pairs=pairs,
        partial=partial,
        states=states,
        samples=samples,
    )


def partial_note(comparison: Comparison) -> str:
    """A note on unfinished runs; "" if there are none."""
    if not comparison.partial:
        return ""
    far = "; ".join(f"{run} has {how_far}" for run, how_far in comparison.partial.items())
    return f"Partial: {far}. Compared on the {comparison.n_cases:,} cases that all have."


def samples_note(samples: Sequence[SampledRuns]) -> str:
    """Runs that asked the same of one model, and their accuracy as samples of one run; "" if there are none."""
    return " ".join(
        f"{', '.join(one.runs[:-1])} and {one.runs[-1]} asked the same of one model: as samples of one run, its "
        f"accuracy is {rate_text(one.accuracy)}."
        for one in samples
    )


def comparison_card(comparison: Comparison) -> Markup:
    """The comparison as a notebook shows it."""
    short = with_short_names(comparison)
    tables = [one for one in (pairs_table(short), ranking_table(short)) if one.rows]
    note = tag("p", ranking_note(short)) if short.ranking else ""
    above = [tag("p", text) for text in (partial_note(short), samples_note(short.samples)) if text]
    return joined((tag("p", f"Cases: {short.n_cases:,}"), *above, *map(_draw, tables), note))


def scores_card(one: Scores) -> Markup:
    """The scores as a notebook shows them."""
    origin = one.origin
    notes = [note for note in (repeats_line(one), *one.notes) if note]
    return joined(
        (
            tag("p", tag("b", origin.model), f" · {origin.task} · {origin.condition_label}"),
            _draw(headline_table([one])),
            *(_draw(step_table(step)) for step in one.steps),
            *(tag("p", note) for note in notes),
            fold_section("Accuracy by slice", _draw(slices_table(one))) if one.slices else "",
        )
    )


def _draw(one: Table) -> Markup:
    return html_table(one.columns, one.rows, caption=one.title)


def _headline(one: Scores) -> Row:
    answers, usage = one.answers, one.usage
    return (
        one.origin.name,
        _counted(one),
        rate_text(answers.accuracy) if answers else "–",
        rate_text(answers.accuracy_answered) if answers else "–",
        states_text(answers.states) if answers else "–",
        cost_text(usage),
    )


def states_text(states: Mapping[str, int]) -> str:
    """The number of answers in each state."""
    return ", ".join(f"{count:,} {state}" for state, count in states.items() if count) or "–"


def unanswered_text(states: Mapping[str, int]) -> str:
    """The number of answers in each state but ok; a dash if all are."""
    return states_text({state: count for state, count in states.items() if state != "ok"})


def _counted(one: Scores) -> str:
    """The number of cases; for an unfinished run, done of due."""
    if one.partial is not None:
        return f"{one.partial.done:,} of {one.partial.due:,}"
    return f"{one.answers.n_cases:,}" if one.answers else NOTHING


def _key_metrics(step: TextScores, metrics: Sequence[Metric]) -> tuple[str, ...]:
    values = {metric.metric: metric.value for metric in step.metrics}
    return (
        ", ".join(f"{count} {state}" for state, count in step.states.items()) or "none",
        *(value_text(values.get(metric.name)) for metric in metrics),
    )


def _mean(metric: MetricScore) -> str:
    return value_text(metric.value) if metric.value else f"not computed: {metric.not_computed}"


def _arrow(metric: MetricScore | Metric) -> str:
    return {"higher": "↑", "lower": "↓", "neither": ""}[metric.direction]
