"""The data card of a built benchmark: counts, decisions, and limits of the checks."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from medthink.cases.statistics import Statistics
from medthink.cases.statistics_figure import COLOURS, INK, STYLE, save_figure
from medthink.core.markup import one_line
from medthink.core.numbers import as_percent
from medthink.curate.plan import StageSummary
from medthink.curate.rulings import StageErrors


class CardFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a card."""

    name: str
    stages: Sequence[StageSummary]
    statistics: Statistics
    licences: Mapping[str, int]
    sources: Mapping[str, int]
    probes: Mapping[str, str]
    problems: Mapping[str, int]
    errors: Sequence[StageErrors]
    notes: Sequence[str]
    fingerprint: str


def write_card(facts: CardFacts) -> str:
    """The card as Markdown, with the metadata header that dataset hubs read."""
    parts = [
        _head(facts),
        f"# {facts.name}",
        "Multi-image diagnostic reasoning cases in the MedThinkVQA form. For research and education, not for patients.",
        "## What is in it",
        _statistics(facts.statistics),
        "![Statistics](statistics.svg)",
        "## How the cases were chosen",
        "![Funnel](funnel.svg)",
        _funnel(facts.stages),
        _reasons(facts.stages),
        "## What was not checked",
        _list(f"**{one.stage}**: {missing}" for one in facts.stages for missing in one.not_covered),
        "## What guessers score without seeing the images",
        _probes(facts.probes),
        "## What people checked",
        _checked(facts.errors),
        "## Result of `medthink data check`",
        _problems(facts.problems),
        "## Settings of every stage",
        _settings(facts.stages),
        "## Licences and sources",
        _table(("licence", "cases"), [(name or "not stated", count) for name, count in facts.licences.items()]),
        _table(("source", "cases"), [(name or "not stated", count) for name, count in facts.sources.items()]),
        *(["## Notes", _list(facts.notes)] if facts.notes else []),
        f"Fingerprint: `{facts.fingerprint}`",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(facts: CardFacts) -> str:
    files = "\n".join(f"  - split: {split}\n    path: {split}.*" for split in facts.statistics.splits)
    licence = next(iter(facts.licences), "") if len(facts.licences) == 1 else ""
    stated = f"license: other\nlicense_name: {_plain(licence)}\n" if licence else ""
    return (
        f"---\n{stated}task_categories:\n- visual-question-answering\n"
        f"configs:\n- config_name: default\n  data_files:\n{files}\n---"
    )


def _plain(text: str) -> str:
    return "".join(sign if sign.isalnum() or sign in ".-" else "-" for sign in text).strip("-").lower()


def _statistics(statistics: Statistics) -> str:
    columns = statistics.columns
    rows = [
        ("cases", *(f"{one.cases:,}" for one in columns.values())),
        ("images", *(f"{one.images:,}" for one in columns.values())),
        ("images per case", *(f"{one.images_per_case_mean:.2f}" for one in columns.values())),
        ("modalities per case", *(f"{one.modalities_per_case_mean:.2f}" for one in columns.values())),
        ("longitudinal", *(as_percent(one.longitudinal_share) for one in columns.values())),
        ("right option longest", *(as_percent(one.correct_longest_alone / one.cases) for one in columns.values())),
        ("letters A to E", *(" ".join(str(one.letters.get(x, 0)) for x in "ABCDE") for one in columns.values())),
    ]
    return _table(("", *columns), rows)


def _funnel(stages: Sequence[StageSummary]) -> str:
    rows = [
        (one.stage, one.counts.seen, one.counts.kept, one.counts.changed, one.counts.out, one.counts.undecided)
        for one in stages
    ]
    return _table(("stage", "came", "unchanged", "changed", "out", "undecided"), rows)


def _reasons(stages: Sequence[StageSummary]) -> str:
    return _list(
        f"**{one.stage}**, {verdict}: " + ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
        for one in stages
        for verdict, reasons in one.counts.reasons.items()
        if verdict in ("out", "undecided")
    )


def _probes(probes: Mapping[str, str]) -> str:
    if not probes:
        return "Not measured: too few cases to train guessers on."
    return _table(("guesser", "right, with 95 % interval (chance 20 %)"), list(probes.items()))


def _checked(errors: Sequence[StageErrors]) -> str:
    if not errors:
        return "Nothing yet: the review sheet has not been filled in."
    rows = [(one.stage, one.checked, one.wrong, f"≤ {as_percent(one.bound)}") for one in errors]
    return _table(("stage", "decisions checked", "wrong", "error rate (95 % bound)"), rows)


def _problems(problems: Mapping[str, int]) -> str:
    return _table(("code", "times"), list(problems.items())) if problems else "Nothing."


def _settings(stages: Sequence[StageSummary]) -> str:
    return _list(f"**{one.stage}**: {_said(one.settings) or 'default settings'}" for one in stages)


# Paths and addresses are private to whoever built it.
HIDDEN = frozenset(("source", "mapping", "image_dir", "base_url", "alias_file", "distractor_runs", "out", "table"))


def _said(settings: Mapping[str, object]) -> str:
    told = {name: value for name, value in settings.items() if value not in ("", None, [], ()) and name not in HIDDEN}
    return ", ".join(f"{name} = {value}" for name, value in told.items())


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(value: object) -> str:
    return one_line(str(value), 200).replace("|", "\\|")


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {one_line(item, 400)}" for item in items) or "Nothing."


_KINDS = (("passed on", COLOURS[0]), ("undecided", COLOURS[1]), ("out", COLOURS[5]))


def draw_funnel(stages: Sequence[StageSummary], path: Path) -> None:
    """One bar per stage, from first to last; the suffix chooses SVG, PDF or PNG."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 0.9 + 0.34 * len(stages)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        rows = range(len(stages))
        left = [0] * len(stages)
        for kind, colour in _KINDS:
            widths = [_count(one, kind) for one in stages]
            axes.barh(rows, widths, 0.72, left=left, color=colour, label=kind)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        for row, one in enumerate(stages):
            axes.text(left[row], row, f"  {_words(one)}", va="center", ha="left", fontsize=6.5, color=INK)
        axes.set_yticks(rows, [one.stage for one in stages])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.tick_params(length=0)
        axes.set_xlim(0, max([*left, 1]) * 1.45)
        axes.set_xlabel("cases")
        figure.legend(loc="outside upper left", ncols=len(_KINDS))
        save_figure(figure, path)


def _count(one: StageSummary, kind: str) -> int:
    counts = one.counts
    return {"passed on": counts.passed, "undecided": counts.undecided, "out": counts.out}[kind]


def _words(one: StageSummary) -> str:
    counts = one.counts
    gone = [f"−{counts.out:,}"] if counts.out else []
    open_ = [f"{counts.undecided:,} undecided"] if counts.undecided else []
    return ", ".join([f"{counts.passed:,}", *gone, *open_])
