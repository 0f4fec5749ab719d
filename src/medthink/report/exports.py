"""Tables to take away: CSV for spreadsheets, Markdown and LaTeX for papers."""

import csv
import io
from collections.abc import Iterator, Sequence

from medthink.core.cells import guard
from medthink.core.markup import clean, one_line
from medthink.metrics.registry import shown_in
from medthink.report.entries import Entry, Group, answer_pairs, ends_of, value_of
from medthink.report.tables import (
    STEP_NAMES,
    cost_text,
    metric_value,
    rank_range,
    states_text,
    tokens_per_case,
)
from medthink.scoring.scores import AnswerScores, percent
from medthink.stats.ranks import RankedRun

Cell = str | int | float | None

_STATES = ("ok", "unparsed", "refused", "truncated", "failed")
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]|~$"} | {"<": "&lt;", "&": "&amp;"})
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
        "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "|": r"\textbar{}", '"': r"\textquotedbl{}", "–": "--", "·": r"\textperiodcentered{}", "≤": r"$\leq$",
        "…": r"\ldots{}",
    }
)  # fmt: skip


def csv_table(groups: Sequence[Group]) -> str:
    """One row a run, numbers as numbers; no text is left that a spreadsheet would run as a formula."""
    rows = [row for number, group in enumerate(groups, 1) for row in _records(group, number)]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_csv_cell(row.get(name)) for name in columns] for row in rows)
    return stream.getvalue()


def markdown_tables(groups: Sequence[Group]) -> str:
    """A table a group."""
    return "\n".join(part for group in groups if group.lettered for part in _markdown_group(group))


def latex_tables(groups: Sequence[Group]) -> str:
    """A `booktabs` table a group."""
    return "\n".join(part for group in groups if group.lettered for part in _latex_group(group))


def escape_markdown(text: str) -> str:
    """The text as words of a Markdown table's cell."""
    return one_line(text, 200).translate(_MARKDOWN)


def escape_latex(text: str) -> str:
    """The text as words of a LaTeX table's cell."""
    return one_line(text, 200).translate(_LATEX)


def _csv_cell(value: Cell) -> Cell:
    return guard(clean(value)) if isinstance(value, str) else value


def _records(group: Group, number: int) -> Iterator[dict[str, Cell]]:
    places = {entry.label: place for entry, place in group.ranked()}
    for entry in group.entries:
        origin = entry.scores.origin
        yield {
            "group": number, "run": entry.name, "model": entry.manifest.model, "task": origin.task, "kind": origin.kind,
            "condition": origin.condition_label, "benchmark": group.benchmark, "split": group.split,
            "fingerprint": origin.fingerprint, "cases": group.n_cases,
            **_answer_record(entry.scores.answers, places.get(entry.label)),
            **_usage_record(entry),
            **_step_record(entry),
            "package": entry.scores.package, "scorer": entry.scores.scorer,
        }  # fmt: skip


def _answer_record(answers: AnswerScores | None, place: RankedRun | None) -> dict[str, Cell]:
    accuracy = answers.accuracy if answers else None
    low, high = ends_of(accuracy) or (None, None)
    return {
        "predictions": answers.n_predictions if answers else None,
        "accuracy": _rounded(value_of(accuracy)), "accuracy_low": _rounded(low), "accuracy_high": _rounded(high),
        "accuracy_answered": _rounded(value_of(answers.accuracy_answered)) if answers else None,
        "rank_best": place.rank if place else None, "rank_worst": place.worst if place else None,
        "tier": place.tier if place else None,
        **{f"n_{state}": answers.states.get(state, 0) if answers else None for state in _STATES},
    }  # fmt: skip


def _usage_record(entry: Entry) -> dict[str, Cell]:
    usage = entry.scores.usage
    return {
        "calls": usage.calls if usage else None,
        "output_tokens_a_case": _rounded(tokens_per_case(entry)),
        "cost_usd": _rounded(usage.cost_usd.value) if usage else None,
    }


def _step_record(entry: Entry) -> dict[str, Cell]:
    record: dict[str, Cell] = {}
    for step in STEP_NAMES:
        for metric in shown_in("exports"):
            measured = metric_value(entry.scores, step, metric.name)
            low, high = ends_of(measured) or (None, None)
            name = f"{step}_{metric.name}"
            record |= {name: _rounded(value_of(measured)), f"{name}_low": _rounded(low), f"{name}_high": _rounded(high)}
    return record


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _paper_rows(group: Group) -> Iterator[tuple[str, ...]]:
    places = {entry.label: place for entry, place in group.ranked()}
    for entry, answers in answer_pairs(group.entries):
        place = places.get(entry.label)
        yield (
            entry.label,
            percent(answers.accuracy),
            rank_range(place.rank, place.worst) if place else "–",
            states_text(answers.states),
            cost_text(entry.scores.usage),
        )


_PAPER_COLUMNS = ("Run", "Accuracy (95 % interval)", "Rank", "No letter", "Cost")


def _markdown_group(group: Group) -> Iterator[str]:
    yield f"**{escape_markdown(group.title)}**"
    yield ""
    yield "| " + " | ".join(_PAPER_COLUMNS) + " |"
    yield "|---|---:|---:|---|---:|"
    for row in _paper_rows(group):
        yield "| " + " | ".join(map(escape_markdown, row)) + " |"
    yield ""


def _latex_group(group: Group) -> Iterator[str]:
    yield r"% needs \usepackage{booktabs} and, for quotation marks in names, \usepackage[T1]{fontenc}"
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{escape_latex(group.title)}. Rank: range that holds the true rank at 95\,\%.}}"
    yield r"\begin{tabular}{lrrlr}"
    yield r"\toprule"
    yield " & ".join(map(escape_latex, _PAPER_COLUMNS)) + r" \\"
    yield r"\midrule"
    for row in _paper_rows(group):
        yield " & ".join(map(escape_latex, row)) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"
    yield ""
