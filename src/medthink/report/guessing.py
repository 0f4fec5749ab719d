"""The runs' gain over guessing: over a rule, trained guessers if requested, and own runs without images."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from medthink.audit.benchmark import ALPHA, BenchmarkAudit, audit_benchmark
from medthink.audit.rivals import rival_guesses
from medthink.audit.runs import RunAudit, audit_run
from medthink.cases.benchmark import Benchmark
from medthink.core.markup import Markup, Table, fold_section, tag
from medthink.core.numbers import as_p_value, as_percent, as_points, as_points_and_ends
from medthink.report.runs import ComparableGroup, ReportRun
from medthink.report.summary import name_some
from medthink.report.tables import table_markup
from medthink.runs.run import Run
from medthink.scoring.scores import rate_text
from medthink.stats.estimate import Estimate, Measured

_MEANING = (
    "Diagnostic gain is accuracy minus that of the strongest rival on the same cases, in points. A rival lacks the "
    "decisive input: a guesser, or the same model without the images. If the interval includes zero, the run has not "
    "shown more than the rival."
)
_UNTRAINED = (
    "medthink report --audit also audits the benchmark itself: the accuracy of each guesser, and whether it is above "
    "chance."
)


class GroupAudit(NamedTuple):
    """The audits of a group's runs; `benchmark` is that of the benchmark itself, or None."""

    audits: tuple[tuple[ReportRun, RunAudit], ...]
    benchmark: BenchmarkAudit | None


def audit_group(group: ComparableGroup, data: Path | None = None, *, trains: bool) -> GroupAudit:
    """Audit every run that answered by letter; `trains` also audits the benchmark itself."""
    if not group.lettered:
        return GroupAudit((), None)
    scored = [entry.scores for entry in group.lettered]
    first = group.entries[0]
    benchmark, split = Benchmark.open(data or Run.open(first.path).benchmark_path()), first.manifest.selection.split
    guesses = rival_guesses(benchmark, split)
    found = audit_benchmark(benchmark, split) if trains else None
    return GroupAudit(tuple((entry, audit_run(entry.scores, guesses, scored)) for entry in group.lettered), found)


def validity_markup(named: Sequence[tuple[str, GroupAudit]]) -> Iterator[Markup]:
    """The section, group by group: the definition, one row per run, every rival, and the effect of a change of form."""
    yield tag("p", _MEANING)
    if any(audited.benchmark is None for _, audited in named):
        yield tag("p", _UNTRAINED, class_="soft")
    for title, audited in named:
        yield tag("h3", title)
        yield from _group_markup(audited)


def _group_markup(audited: GroupAudit) -> Iterator[Markup]:
    if audited.benchmark:
        alarms = [one.name for one in audited.benchmark.alarms]
        yield tag("p", f"{_alarm_words(alarms)} (α = {ALPHA:g}, Holm over the guessers without images).")
        yield table_markup(_benchmark_table(audited.benchmark), name="Guessers on the benchmark")
    yield table_markup(_gain_table(audited.audits), name="Diagnostic gain by run")
    yield fold_section("Every rival", table_markup(_rival_table(audited.audits), name="Runs against their rivals"))
    consistency = _consistency_table(audited.audits)
    if consistency.rows:
        yield tag("h4", "The same question in another form")
        yield table_markup(consistency, name="Consistency when only the form changes")


def points_with_interval(measured: Measured) -> str:
    """A difference of rates in points: `+4.2 (−1.0 to +9.4)`."""
    if isinstance(measured, Estimate):
        value, ends = as_points_and_ends(measured.value, measured.low, measured.high)
        return f"{value} ({ends})"
    return "–" if measured.value is None else f"{as_points(measured.value)} (no interval)"


def _alarm_words(alarms: list[str]) -> str:
    if not alarms:
        return "The benchmark raises no alarm: no guesser beats chance significantly"
    return f"The benchmark raises an alarm: {name_some(alarms)} beat{'s' if len(alarms) == 1 else ''} chance"


def _benchmark_table(found: BenchmarkAudit) -> Table:
    rows = tuple(
        (
            one.name,
            one.meaning,
            rate_text(one.accuracy),
            "–" if one.p_holm is None else as_p_value(one.p_holm),
            one.verdict,
        )
        for one in found.scores
    )
    return Table(("Guesser", "What it sees", "Right", "p (Holm)", "Verdict"), rows, frozenset({2, 3}))


def _gain_table(audits: Sequence[tuple[ReportRun, RunAudit]]) -> Table:
    rows = []
    for entry, audit in audits:
        strongest = audit.strongest
        bias = "–" if audit.place_bias is None else as_p_value(audit.place_bias.p_value)
        rows.append(
            (
                entry.label,
                rate_text(audit.accuracy),
                f"{strongest.name}: {as_percent(strongest.accuracy.value or 0)}",
                points_with_interval(audit.diagnostic_gain),
                rate_text(strongest.on_misses),
                bias,
            )
        )
    columns = (
        "Run",
        "Accuracy",
        "Strongest rival",
        "Diagnostic gain (points)",
        "Accuracy where rival is wrong",
        "Position bias, p",
    )
    return Table(columns, tuple(rows), frozenset({1, 3, 4, 5}))


def _rival_table(audits: Sequence[tuple[ReportRun, RunAudit]]) -> Table:
    rows = tuple(
        (
            entry.label,
            rival.name,
            rate_text(rival.accuracy),
            points_with_interval(rival.gain),
            rate_text(rival.on_misses),
        )
        for entry, audit in audits
        for rival in audit.rivals
    )
    columns = ("Run", "Rival", "Rival's accuracy", "Run's gain (points)", "Run's accuracy where the rival is wrong")
    return Table(columns, rows, frozenset({2, 3, 4}))


def _consistency_table(audits: Sequence[tuple[ReportRun, RunAudit]]) -> Table:
    rows = tuple(
        (entry.label, one.what.replace("_", " "), rate_text(one.same_answer), points_with_interval(one.difference))
        for entry, audit in audits
        for one in audit.consistency
    )
    return Table(("Run", "Changed", "Same answer", "Difference in accuracy"), rows, frozenset({2, 3}))
