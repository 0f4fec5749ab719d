"""`medthink audit`: how much of a benchmark, or of a run's score, is guessing."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.command import LazyGroup
from medthink.cli.flags import PATH, RUN, ListOption, data_flag, json_flag, quiet_flag, split_flag
from medthink.cli.output import console, print_json, print_line, print_table, progress
from medthink.core.errors import UsageError
from medthink.core.files import short_names
from medthink.core.numbers import as_p_value, as_percent

if TYPE_CHECKING:
    from datetime import date, datetime

    from medthink.audit.benchmark import BenchmarkAudit
    from medthink.audit.contamination import Contamination, MemorisationResult
    from medthink.audit.runs import RunAudit
    from medthink.cases.benchmark import Benchmark
    from medthink.scoring.inputs import ScoringInput
    from medthink.scoring.scores import Scores

_MEANINGS = {
    "letters": "wrong options given their published letters",
    "hidden option": "a hidden wrong option named word for word, the others in published order (by chance: in another)",
    "case number": "the case's number named",
    "answers": "answers right in the published order (by chance: in another, weighted to the same right letters)",
}


def show_contamination(
    runs: Sequence[Path], controls: Sequence[Path], data: Sequence[Path], *, released: "date | None", as_json: bool
) -> None:
    """Test the runs and print the results; exit code 1 if a run that is not a control raises an alarm."""
    from medthink.audit.contamination import audit_contamination
    from medthink.scoring.score import cached_scores

    loaded = [_load(path, data) for path in runs]
    recalls = [one for one in loaded if one.task == "recall"]
    answered = [(one, cached_scores(path, one)) for path, one in zip(runs, loaded, strict=True) if one.has_letters]
    found = audit_contamination(recalls, [_load(path, data) for path in controls], answered, released=released)
    if as_json:
        print_json(to_builtins(found))
    else:
        for one in found:
            _show(one)
    if any(one.alarms and not one.is_control for one in found):
        raise click.exceptions.Exit(1)


def _load(run: Path, benchmarks: Sequence[Path]) -> "ScoringInput":
    """The run with the cases of the benchmark that is its own: one of these, or the one where it was made."""
    from medthink.scoring.inputs import load_run

    problems = []
    for place in (*benchmarks, None):
        try:
            return load_run(run, place)
        except UsageError as error:
            problems.append(error)
    raise problems[0]


def _show(found: "Contamination") -> None:
    out = console()
    mark = " (control)" if found.is_control else ""
    title = f"{found.model} on {found.n_cases} cases: what only memory can explain{mark}"
    columns = ("", "n", "found", "by chance", "p (Holm)", "verdict")
    out.print(print_table(title, columns, [_row(trace) for trace in found.traces], right=[1, 2, 3]))
    for trace in found.traces:
        if trace.untested:
            out.print(f"{trace.kind}: not tested: {trace.untested}.")
    if not found.is_control:
        _explain(found)
    out.print(_statement(found))
    out.print()


def _row(trace: "MemorisationResult") -> tuple[object, ...]:
    from medthink.stats.memorisation import LEAST_P

    if trace.test is None or trace.p_holm is None:
        return (trace.kind, "", "", "", "", "not tested")
    test = trace.test
    verdict = "alarm" if trace.is_alarm else "clear"
    # Shuffles cannot give less, and Holm's correction may multiply it by four.
    p_value = as_p_value(trace.p_holm, 4 * LEAST_P if trace.kind == "case number" else 0.0)
    return (trace.kind, test.n, as_percent(test.found), as_percent(test.expected), p_value, verdict)


def _explain(found: "Contamination") -> None:
    """Print the meaning of each line, and the rates that raise no alarm."""
    from medthink.scoring.scores import difference_text, rate_text

    out = console()
    for trace in found.traces:
        if trace.test is not None:
            out.print(f"{trace.kind}: {_MEANINGS[trace.kind]}.")
    names = short_names([one.run for one in found.verbatim])
    rows = [
        (
            names[one.run],
            f"{one.model}, {one.what}",
            rate_text(one.rate),
            "" if one.gap is None else difference_text(one.gap),
        )
        for one in found.verbatim
    ]
    out.print()
    title = "For information (skill explains some of it): hidden wrong options named word for word"
    out.print(print_table(title, ("run", "", "named", "difference"), rows))
    for gap in found.dates:
        out.print(
            f"{short_names([gap.run])[gap.run]}: right {rate_text(gap.before)} before {gap.released}, "
            f"{rate_text(gap.after)} from then on; {difference_text(gap.difference)} "
            "(for information: later cases may be harder; "
            f"{gap.undated} cases have no date on one side of it in their column case_date)."
        )


def _condition(found: "Contamination") -> str:
    """On what the alarm of case numbers rests; empty where another test raised it."""
    spread = next((one.test.spread for one in found.alarms if one.test is not None and one.test.spread), None)
    if spread is None:
        return ""
    return (
        " Case number: without memory, a number is hit no more often than those beside it; the other numbers named are "
        f"off by {spread:,.0f} at the median."
    )


def _statement(found: "Contamination") -> str:
    """The verdict with its error rate; every "no alarm" states what could have been detected."""
    alarms = ", ".join(trace.kind for trace in found.alarms)
    if alarms and found.is_control:
        return (
            f"ALARM IN A CONTROL: {alarms}. Nothing can be remembered here, so the order or numbering of "
            "these cases is not random: do not interpret an alarm of this test as memorisation."
        )
    if alarms:
        return (
            f"ALARM: {found.model} knows things that cannot be inferred from the case ({alarms}): it has seen these "
            "cases, or a text made from them. At most 1 % of models that have not seen the cases raise this alarm."
            f"{_condition(found)}"
        )
    seen = [
        f"{trace.kind} {as_percent(trace.test.detectable)}"
        for trace in found.traces
        if trace.test is not None and trace.test.detectable is not None
    ]
    could = (
        f"With 80 % power, memory of this share of the cases would be detected: {', '.join(seen)}."
        if seen
        else ("There are too few cases to detect any memory.")
    )
    return f"No alarm: no memory of the published cases was detected. {could} Weaker memory may exist."


@click.group(
    cls=LazyGroup,
    modules={
        "shortcuts": "results.audit:audit_shortcuts",
        "contamination": "results.audit:audit_contamination",
    },
    default="shortcuts",
)
def audit() -> None:
    """Audit a benchmark for shortcuts, and runs for guessing or memory.

    `medthink audit DATA [RUN]...` is short for `medthink audit shortcuts DATA [RUN]...`.

    \b
    Example: medthink audit bench/ runs/all-images runs/no-images
    Example: medthink audit contamination runs/recall runs/answer runs/answer-seeded
    """


@click.command("contamination")
@click.argument("runs", nargs=-1, required=True, type=RUN)
@click.option(
    "--control",
    "controls",
    cls=ListOption,
    type=PATH,
    metavar="RUN",
    help="A control: a recall run on cases, or with a model, for which nothing can be remembered; may be repeated.",
)
@click.option(
    "--model-date",
    "released",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="The model's training cut-off date: show accuracy before and after it.",
)
@data_flag.but(cls=ListOption, help="A benchmark of RUNS or controls, if it has moved; may be repeated.")
@json_flag
def audit_contamination(
    runs: tuple[Path, ...],
    controls: tuple[Path, ...],
    released: "datetime | None",
    data: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Test whether the models of RUNS have seen the cases before. Exit code 1 if an alarm is raised.

    RUNS are runs of the task recall, and answer runs of the same models.

    \b
    Example: medthink audit contamination runs/recall runs/answer runs/answer-seeded --control runs/recall-phantoms
    """
    show_contamination(runs, controls, data, released=released.date() if released else None, as_json=as_json)


@click.command("shortcuts")
@click.argument("data", type=PATH)
@click.argument("runs", nargs=-1, type=RUN)
@split_flag
@quiet_flag
@json_flag
def audit_shortcuts(data: Path, runs: tuple[Path, ...], split: str, as_json: bool) -> None:
    """Audit the benchmark DATA for shortcuts, and RUNS (or submission files) for their gain over guessing.

    No model is asked: guessers are trained on the train split (or cross-validated) in seconds. Runs of one model under
    different conditions (no images, swapped images, rotated options) are compared. Exit code 1 if an alarm is raised.

    \b
    Example: medthink audit bench/
    Example: medthink audit bench/ runs/all-images runs/no-images
    """
    from medthink.audit.benchmark import audit_benchmark
    from medthink.cases.benchmark import Benchmark
    from medthink.runs.manifest import find_runs

    benchmark = Benchmark.open(data)
    scored = _score(find_runs(runs), data, split)
    with progress() as bar:
        task = bar.add_task("auditing", total=None)
        found = audit_benchmark(
            benchmark, split, advance=lambda name: bar.update(task, description=f"auditing: {name}")
        )
        audits = _audit(benchmark, split, scored)
    if as_json:
        print_json({"benchmark": to_builtins(found), "runs": to_builtins(audits)})
    else:
        _show_benchmark(found)
        for one in audits:
            _show_audit(one)
    if found.alarms:
        raise click.exceptions.Exit(1)


def _score(runs: tuple[Path, ...], data: Path, split: str) -> "list[Scores]":
    """The runs' scores; guessers cover the audited split only, so runs on another are refused."""
    from medthink.scoring.inputs import load_all
    from medthink.scoring.score import cached_scores

    scored = [cached_scores(run, loaded) for run, loaded in zip(runs, load_all(runs, data, split=split), strict=True)]
    for one in scored:
        if one.origin.split != split:
            raise UsageError(
                f"{one.origin.name} is on the {one.origin.split} split, the audit on {split}",
                remedy=f"audit it with --split {one.origin.split}",
            )
        if one.answers is None:
            print_line(f"{one.origin.name}: it has no letters, so there is nothing to audit", stderr=True)
    return scored


def _audit(benchmark: "Benchmark", split: str, scored: "list[Scores]") -> "list[RunAudit]":
    from medthink.audit.rivals import rival_guesses
    from medthink.audit.runs import audit_run

    if not scored:
        return []
    guesses = rival_guesses(benchmark, split)
    return [audit_run(one, guesses, scored) for one in scored if one.answers is not None]


def _show_benchmark(found: "BenchmarkAudit") -> None:
    from medthink.scoring.scores import rate_text, value_text

    rows = [
        (one.name, one.meaning, rate_text(one.accuracy), "" if one.p_holm is None else f"{one.p_holm:.3g}", one.verdict)
        for one in found.scores
    ]
    chance = found.scores[0].chance
    out = console()
    title = (
        f"{found.n_cases} cases of {found.split}; chance is {as_percent(chance)}; trained on: {found.scores[-1].source}"
    )
    out.print(print_table(title, ("guesser", "what it sees", "right (95 %)", "p (Holm)", "verdict"), rows))
    out.print()
    rows_ = [
        ("right letters", ", ".join(f"{letter} {count}" for letter, count in found.letters.items())),
        ("right option is the longest", rate_text(found.length_gap.right_is_longest)),
        ("right option longer than the mean wrong one by", f"{value_text(found.length_gap.characters)} characters"),
        ("cases that look like another of the same answer, and count once", str(found.n_look_alikes)),
        *((f"{code} (all splits)", str(count)) for code, count in found.problems.items()),
    ]
    out.print(print_table("Also", ("", ""), rows_))
    out.print()
    if found.alarms:
        names = ", ".join(one.name for one in found.alarms)
        out.print(f"ALARM: {names} beat chance. A score on this benchmark is partly guessing; see docs/audit.md.")
    else:
        out.print(f"No alarm: no guesser without images is shown to beat chance. {_could_be_seen(found)}")
    out.print()


def _could_be_seen(found: "BenchmarkAudit") -> str:
    """Every "no alarm" states what could have been detected."""
    if found.detectable is None:
        return f"{found.n_cases} cases are too few to detect any guesser."
    return (
        f"With {found.n_cases} cases, a guesser that is right {as_percent(found.detectable, 0)} of the time or more "
        "would be detected with 80 % power; a weaker shortcut may exist."
    )


def _show_audit(audit: "RunAudit") -> None:
    from medthink.audit.runs import gain_caution
    from medthink.scoring.scores import difference_text, rate_text

    name = short_names([audit.run])[audit.run]
    out = console()
    rows = [
        (one.name, rate_text(one.accuracy), difference_text(one.gain), rate_text(one.on_misses)) for one in audit.rivals
    ]
    columns = ("rival", "its accuracy", "gain over it", "accuracy where it is wrong")
    out.print(print_table(f"{name}: accuracy {rate_text(audit.accuracy)}", columns, rows))
    out.print(f"Diagnostic gain of {name}: {difference_text(audit.diagnostic_gain)}")
    out.print(
        f"That is over the strongest rival without images ({audit.strongest_rival}), and "
        f"{rate_text(audit.normalised_gain)} of the possible gain over that rival."
    )
    if caution := gain_caution(audit):
        out.print(f"Caution: {caution}.")
    for one in audit.consistency:
        out.print(
            f"Against {one.what.replace('_', ' ')}: same answer {rate_text(one.same_answer)}, "
            f"accuracy {difference_text(one.difference)} here."
        )
    if audit.place_bias is not None:
        letters = ", ".join(f"{letter} {count}" for letter, count in audit.place_bias.chosen.items())
        out.print(f"Letters chosen as shown: {letters} (wrong ones evenly spread: p = {audit.place_bias.p_value:.3g}).")
    out.print()
