"""`medthink probe --contamination`: whether models have seen the cases they are tested on."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.show import console, print_json, table
from medthink.core.files import short_names
from medthink.core.numbers import as_p_value, as_percent

if TYPE_CHECKING:
    from datetime import date

    from medthink.validity.contamination import Contamination, MemoryTrace

_MEANINGS = {
    "letters": "wrong options put back under their published letters",
    "hidden option": "a hidden wrong option named word for word, the others in published order (by chance: in another)",
    "case number": "the case's number named",
    "answers": "answers right in the published order (by chance: in another, weighted to the same right letters)",
}


def show_contamination(
    paths: Sequence[Path], controls: Sequence[Path], *, released: "date | None", as_json: bool
) -> None:
    """Probe the runs and print what was found; exit code 1 if a run that is not a control raises an alarm."""
    from medthink.scoring.material import load_run
    from medthink.scoring.score import kept_scores
    from medthink.validity.contamination import probe_contamination

    data = paths[0] if paths[0].exists() and not (paths[0] / "run.json").is_file() else None
    runs = [path for path in paths if path != data]
    loaded = [load_run(path, data) for path in runs]
    recalls = [one for one in loaded if one.task == "recall"]
    answered = [(one, kept_scores(path, one)) for path, one in zip(runs, loaded, strict=True) if one.has_letters]
    found = probe_contamination(recalls, [load_run(path) for path in controls], answered, released=released)
    if as_json:
        print_json(to_builtins(found))
    else:
        for one in found:
            _show(one)
    if any(one.alarms and not one.is_control for one in found):
        raise click.exceptions.Exit(1)


def _show(found: "Contamination") -> None:
    out = console()
    mark = " (control)" if found.is_control else ""
    title = f"{found.model} on {found.n_cases} cases: what only memory can explain{mark}"
    columns = ("", "n", "found", "by chance", "p (Holm)", "verdict")
    out.print(table(title, columns, [_row(trace) for trace in found.traces], right=[1, 2, 3]))
    for trace in found.traces:
        if trace.untested:
            out.print(f"{trace.kind}: not tested: {trace.untested}.")
    if not found.is_control:
        _explain(found)
    out.print(_statement(found))
    out.print()


def _row(trace: "MemoryTrace") -> tuple[object, ...]:
    from medthink.stats.memory import LEAST_P

    if trace.test is None or trace.p_holm is None:
        return (trace.kind, "", "", "", "", "not tested")
    test = trace.test
    verdict = "alarm" if trace.is_alarm else "clear"
    # Shuffles cannot give less, and Holm's correction may multiply it by four.
    p_value = as_p_value(trace.p_holm, 4 * LEAST_P if trace.kind == "case number" else 0.0)
    return (trace.kind, test.n, as_percent(test.found), as_percent(test.expected), p_value, verdict)


def _explain(found: "Contamination") -> None:
    """What each line means, and the rates that raise no alarm."""
    from medthink.scoring.scores import percent, points

    out = console()
    for trace in found.traces:
        if trace.test is not None:
            out.print(f"{trace.kind}: {_MEANINGS[trace.kind]}.")
    names = short_names([one.run for one in found.verbatim])
    rows = [
        (names[one.run], f"{one.model}, {one.what}", percent(one.rate), "" if one.gap is None else points(one.gap))
        for one in found.verbatim
    ]
    out.print()
    title = "For information (skill explains some of it): hidden wrong options named word for word"
    out.print(table(title, ("run", "", "named", "difference"), rows))
    for gap in found.dates:
        out.print(
            f"{short_names([gap.run])[gap.run]}: right {percent(gap.before)} before {gap.released}, "
            f"{percent(gap.after)} from then on; {points(gap.difference)} (for information: later cases may be harder; "
            f"{gap.undated} cases have no date in their column case_date)."
        )


def _statement(found: "Contamination") -> str:
    """The verdict with its error rate; every "no alarm" says what could have been detected."""
    alarms = ", ".join(trace.kind for trace in found.alarms)
    if alarms and found.is_control:
        return (
            f"ALARM IN A CONTROL: {alarms}. Nothing can be remembered here, so the order or numbering of "
            "these cases is not random: do not take an alarm of this test as memory."
        )
    if alarms:
        return (
            f"ALARM: {found.model} remembers what cannot be worked out ({alarms}): it has seen these cases, or a text "
            "made from them. At most 1 % of models that have not raise this alarm."
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
