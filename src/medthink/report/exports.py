"""Table exports: CSV for spreadsheets, Markdown and LaTeX for papers."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from medthink.audit.runs import RunAudit
from medthink.core.markup import Table, clean, one_line
from medthink.core.numbers import as_percent
from medthink.core.tables import csv_text
from medthink.metrics.registry import METRICS, shown_in
from medthink.report.guessing import GroupAudit, points_with_interval
from medthink.report.runs import ComparableGroup, ReportRun, answer_pairs
from medthink.report.tables import metric_value, tokens_per_case, without_columns
from medthink.scoring.scores import AnswerScores, cost_text, rate_text, value_text
from medthink.scoring.tables import unanswered_text
from medthink.stats.comparisons.ranks import RankedRun
from medthink.stats.estimate import Measured, ends_of, rank_range, value_of
from medthink.workflow.tasks import known_texts

Cell = str | int | float | None

_STATES = ("ok", "unparsed", "refused", "truncated", "failed")
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]|~$"} | {"<": "&lt;", "&": "&amp;"})
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
        "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "|": r"\textbar{}", '"': r"\textquotedbl{}", "–": "--", "·": r"\textperiodcentered{}", "≤": r"$\leq$",
        "…": r"\ldots{}", "−": r"$-$", "≈": r"$\approx$", "≥": r"$\geq$", "×": r"$\times$", "’": "'",
        "“": "``", "”": "''",
        "\N{REPLACEMENT CHARACTER}": "?",
    }
)  # fmt: skip
# Characters of LaTeX's own fonts; anything else stops the compiler.
_NOT_LATEX = re.compile(r"[^\x20-\x7e\xa1-\xff]")


def csv_table(groups: Sequence[ComparableGroup], audited: Sequence[GroupAudit] = ()) -> str:
    """One row per run, with numbers as numbers; no text can be executed by a spreadsheet as a formula."""
    named = [(number, group, audits_by_label(audited, number)) for number, group in enumerate(groups)]
    rows = [row for number, group, audits in named for row in _records(group, number + 1, audits)]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cleaned = ({name: clean(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in rows)
    return csv_text(columns, cleaned)


def markdown_tables(groups: Sequence[ComparableGroup], audited: Sequence[GroupAudit] = ()) -> str:
    """One table per group."""
    return _paper_tables(groups, audited, _markdown_group)


def latex_tables(groups: Sequence[ComparableGroup], audited: Sequence[GroupAudit] = ()) -> str:
    """One `booktabs` table per group."""
    return _paper_tables(groups, audited, _latex_group)


def _paper_tables(
    groups: Sequence[ComparableGroup], audited: Sequence[GroupAudit], write: Callable[[str, Table], Iterator[str]]
) -> str:
    tables = [
        (group.title, paper_table(group, audits_by_label(audited, number)))
        for number, group in enumerate(groups)
        if group.lettered
    ]
    return "\n".join(line for title, table in tables for line in write(title, table))


def audits_by_label(audited: Sequence[GroupAudit], number: int) -> dict[str, RunAudit]:
    """The audits of a group's runs by label; empty if none were made."""
    return {entry.label: audit for entry, audit in audited[number].audits} if audited else {}


def escape_markdown(text: str) -> str:
    """The text, escaped for a cell of a Markdown table."""
    return one_line(text, 200).translate(_MARKDOWN)


def escape_latex(text: str) -> str:
    """The text, escaped for a cell of a LaTeX table."""
    return "".join(map(_latex_character, one_line(text, 200)))


def _latex_character(character: str) -> str:
    written = character.translate(_LATEX)
    return f"[U+{ord(character):04X}]" if _NOT_LATEX.search(written) else written


def _records(group: ComparableGroup, number: int, audits: Mapping[str, RunAudit]) -> Iterator[dict[str, Cell]]:
    places = {entry.label: place for entry, place in group.ranked()}
    for entry in group.entries:
        origin = entry.scores.origin
        yield {
            "group": number, "run": entry.name, "model": entry.manifest.model, "task": origin.task, "kind": origin.kind,
            "condition": origin.condition_label, "benchmark": group.benchmark, "split": group.split,
            "fingerprint": origin.fingerprint, "cases": group.n_cases,
            "cases_due": entry.scores.partial.due if entry.scores.partial else group.n_cases,
            **_answer_record(entry.scores.answers, places.get(entry.label)),
            **_gain_record(audits.get(entry.label)),
            **_usage_record(entry),
            **_step_record(entry),
            "package": entry.scores.package, "scorer": entry.scores.scorer,
        }  # fmt: skip


def _answer_record(answers: AnswerScores | None, place: RankedRun | None) -> dict[str, Cell]:
    return {
        "predictions": answers.n_predictions if answers else None,
        **_with_ends("accuracy", answers.accuracy if answers else None),
        "accuracy_answered": _rounded(value_of(answers.accuracy_answered)) if answers else None,
        "rank_best": place.rank if place else None, "rank_worst": place.worst if place else None,
        "is_leader": int(place.is_leader) if place else None, "letters": " ".join(place.letters) if place else None,
        "tier": place.tier if place else None,
        **{f"n_{state}": answers.states.get(state, 0) if answers else None for state in _STATES},
    }  # fmt: skip


def _gain_record(audit: RunAudit | None) -> dict[str, Cell]:
    rival = audit.strongest if audit else None
    return {
        "strongest_rival": rival.name if rival else None,
        **_with_ends("rival_accuracy", rival.accuracy if rival else None),
        **_with_ends("gain", audit.diagnostic_gain if audit else None),
        **_with_ends("normalised_gain", audit.normalised_gain if audit else None),
        "gain_over_own_run_without_images": None if audit is None else int(audit.has_own_blind),
    }


def _usage_record(entry: ReportRun) -> dict[str, Cell]:
    usage = entry.scores.usage
    return {
        "calls": usage.calls if usage else None,
        "output_tokens_per_case": _rounded(tokens_per_case(entry)),
        "cost_usd": _rounded(usage.cost_usd.value) if usage else None,
        "uncounted_replies": usage.uncounted_replies if usage else None,
        "saved_usd": _rounded(usage.saved_usd) if usage else None,
    }


def _step_record(entry: ReportRun) -> dict[str, Cell]:
    record: dict[str, Cell] = {}
    for step in known_texts():
        for metric in shown_in("exports"):
            record |= _with_ends(f"{step}_{metric.name}", metric_value(entry.scores, step, metric.name))
    return record


def _with_ends(name: str, measured: Measured | None) -> dict[str, Cell]:
    low, high = ends_of(measured) or (None, None)
    return {name: _rounded(value_of(measured)), f"{name}_low": _rounded(low), f"{name}_high": _rounded(high)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def paper_table(group: ComparableGroup, audits: Mapping[str, RunAudit]) -> Table:
    """A group's table for a paper: accuracy, rival, gain, rank, tier, steps, states and cost, with intervals."""
    places = {entry.label: place for entry, place in group.ranked()}
    texts = known_texts().values()
    steps = [(text, metric) for text in texts for metric in _PAPER_METRICS if _has_metric(group, text.name, metric)]
    rows = []
    for entry, answers in answer_pairs(group.entries):
        place, audit = places.get(entry.label), audits.get(entry.label)
        rival = audit.strongest if audit else None
        rows.append(
            (
                entry.label,
                rate_text(answers.accuracy),
                f"{rival.name}: {as_percent(value_of(rival.accuracy) or 0.0)}" if rival else "–",
                points_with_interval(audit.diagnostic_gain) if audit else "–",
                rank_range(place.rank, place.worst) if place else "–",
                str(place.tier) if place else "–",
                *(value_text(metric_value(entry.scores, text.name, metric)) for text, metric in steps),
                unanswered_text(answers.states),
                cost_text(entry.scores.usage),
            )
        )
    names = (f"{text.title.partition(': ')[2] or text.title}, {METRICS[m].title}" for text, m in steps)
    columns = (*_PAPER_COLUMNS, *names, "No letter", "Cost")
    words = {0, 2, len(columns) - 2}
    table = Table(columns, tuple(rows), frozenset(range(len(columns))) - words)
    return without_columns(table, set() if audits else {2, 3})


def _has_metric(group: ComparableGroup, step: str, metric: str) -> bool:
    return any(metric_value(entry.scores, step, metric) is not None for entry in group.lettered)


_PAPER_METRICS = ("rougeL", "finding_f1")
_PAPER_COLUMNS = (
    "Run", "Accuracy (95 % interval)", "Strongest rival", "Gain over it (points)", "Rank", "Tier",
)  # fmt: skip


def _markdown_group(title: str, table: Table) -> Iterator[str]:
    yield f"**{escape_markdown(title)}**"
    yield ""
    yield "| " + " | ".join(table.columns) + " |"
    yield "|" + "|".join("---:" if i in table.numeric else "---" for i in range(len(table.columns))) + "|"
    for row in table.rows:
        yield "| " + " | ".join(map(escape_markdown, row)) + " |"
    yield ""


def _latex_row(cells: Sequence[str]) -> str:
    # The first cell is in braces: after a rule or a row's end, LaTeX reads a bracket as a length.
    first, *rest = map(escape_latex, cells)
    return " & ".join((f"{{{first}}}", *rest)) + r" \\"


def _latex_group(title: str, table: Table) -> Iterator[str]:
    yield r"% needs \usepackage{booktabs}, \usepackage{graphicx} and \usepackage[T1]{fontenc}"
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{escape_latex(title)}. Rank: range that contains the true rank at 95\,\%.}}"
    yield r"\resizebox{\textwidth}{!}{%"
    yield rf"\begin{{tabular}}{{{''.join('r' if i in table.numeric else 'l' for i in range(len(table.columns)))}}}"
    yield r"\toprule"
    yield _latex_row(table.columns)
    yield r"\midrule"
    yield from map(_latex_row, table.rows)
    yield r"\bottomrule"
    yield r"\end{tabular}}"
    yield r"\end{table}"
    yield ""
