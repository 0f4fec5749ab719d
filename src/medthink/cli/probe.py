"""`medthink probe`: how much of a benchmark, or of a run's score, is guessing."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.probe_memory import show_contamination
from medthink.cli.show import console, print_json, progress, say, table
from medthink.core.errors import UsageError
from medthink.core.files import short_names
from medthink.core.numbers import as_percent

if TYPE_CHECKING:
    from datetime import datetime

    from medthink.cases.benchmark import Benchmark
    from medthink.scoring.scores import Scores
    from medthink.validity.audit import Audit
    from medthink.validity.probe import Probe


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--split", default="test", show_default=True, help="The split to audit.")
@click.option(
    "--contamination", is_flag=True, help="Test instead whether the models of RUNS have seen the cases; needs no DATA."
)
@click.option(
    "--control",
    "controls",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="A recall run on cases, or of a model, where nothing can be remembered; may be repeated.",
)
@click.option(
    "--released",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="Show accuracy on cases dated before and after this day.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def probe(
    data: Path,
    runs: tuple[Path, ...],
    split: str,
    contamination: bool,
    controls: tuple[Path, ...],
    released: "datetime | None",
    as_json: bool,
) -> None:  # fmt: skip
    """Audit the benchmark DATA for shortcuts, and RUNS (or submission files) for what they add over guessing.

    No model is asked: guessers are trained on the train split (or cross-validated) in seconds. Runs of one model under
    different conditions (no images, swapped images, rotated options) are compared. Exit code 1 when an alarm is raised.

    \b
    Example: medthink probe bench/
    Example: medthink probe bench/ runs/all-images runs/no-images
    Example: medthink probe --contamination runs/recall runs/answer runs/answer-seeded --control runs/recall-phantoms
    """
    if contamination:
        show_contamination((data, *runs), controls, released=released.date() if released else None, as_json=as_json)
        return
    if controls or released:
        raise UsageError("--control and --released are for --contamination", remedy="add --contamination")
    from medthink.cases.benchmark import Benchmark
    from medthink.validity.probe import probe_benchmark

    benchmark = Benchmark.open(data)
    scored = _score(runs, data, split)
    with progress() as bar:
        task = bar.add_task("probing", total=6)
        found = probe_benchmark(
            benchmark, split, advance=lambda name: bar.update(task, advance=1, description=f"probing: {name}")
        )
        audits = _audit(benchmark, split, scored)
    if as_json:
        print_json({"probe": to_builtins(found), "audits": to_builtins(audits)})
    else:
        _show_probe(found)
        for audit in audits:
            _show_audit(audit)
    if found.alarms:
        raise click.exceptions.Exit(1)


def _score(runs: tuple[Path, ...], data: Path, split: str) -> "list[Scores]":
    """The runs' scores; guessers only cover the audited split, so runs on another are refused."""
    from medthink.scoring.material import load_all
    from medthink.scoring.score import kept_scores

    scored = [kept_scores(run, loaded) for run, loaded in zip(runs, load_all(runs, data, split=split), strict=True)]
    for one in scored:
        if one.origin.split != split:
            raise UsageError(
                f"{one.origin.name} is on the {one.origin.split} split, the audit on {split}",
                remedy=f"audit it with --split {one.origin.split}",
            )
        if one.answers is None:
            say(f"{one.origin.name}: it was not asked for letters, so there is nothing to audit", stderr=True)
    return scored


def _audit(benchmark: "Benchmark", split: str, scored: "list[Scores]") -> "list[Audit]":
    from medthink.validity.audit import audit_run
    from medthink.validity.rivals import rival_guesses

    if not scored:
        return []
    guesses = rival_guesses(benchmark, split)
    return [audit_run(one, guesses, scored) for one in scored if one.answers is not None]


def _show_probe(found: "Probe") -> None:
    from medthink.scoring.scores import number, percent

    rows = [
        (one.name, one.meaning, percent(one.accuracy), "" if one.p_holm is None else f"{one.p_holm:.3g}", one.verdict)
        for one in found.scores
    ]
    chance = found.scores[0].chance
    out = console()
    title = (
        f"{found.n_cases} cases of {found.split}; chance is {as_percent(chance)}; trained on: {found.scores[-1].source}"
    )
    out.print(table(title, ("guesser", "what it sees", "right (95 %)", "p (Holm)", "verdict"), rows))
    out.print()
    rows_ = [
        ("right letters", ", ".join(f"{letter} {count}" for letter, count in found.letters.items())),
        ("right option is the longest", percent(found.length_gap.right_is_longest)),
        ("right option longer than the mean wrong one by", f"{number(found.length_gap.characters)} characters"),
        *((f"{code} (all splits)", str(count)) for code, count in found.problems.items()),
    ]
    out.print(table("Also", ("", ""), rows_))
    out.print()
    if found.alarms:
        names = ", ".join(one.name for one in found.alarms)
        out.print(f"ALARM: {names} beat chance. A score on this benchmark is partly guessing; see docs/validity.md.")
    else:
        out.print(f"No alarm: no guesser without images is shown to beat chance. {_could_be_seen(found)}")
    out.print()


def _could_be_seen(found: "Probe") -> str:
    """Every "no alarm" says what could have been detected."""
    if found.detectable is None:
        return f"{found.n_cases} cases are too few to show it for any guesser."
    return (
        f"With {found.n_cases} cases, a guesser that is right {as_percent(found.detectable, 0)} of the time or more "
        "would be detected with 80 % power; a weaker shortcut may exist."
    )


def _show_audit(audit: "Audit") -> None:
    from medthink.scoring.scores import percent, points
    from medthink.validity.audit import gain_caution

    name = short_names([audit.run])[audit.run]
    out = console()
    rows = [(one.name, percent(one.accuracy), points(one.gain), percent(one.on_misses)) for one in audit.rivals]
    columns = ("rival", "its accuracy", "gain over it", "accuracy where it is wrong")
    out.print(table(f"{name}: accuracy {percent(audit.accuracy)}", columns, rows))
    out.print(f"Diagnostic gain of {name}: {points(audit.diagnostic_gain)}")
    out.print(
        f"That is over the strongest rival without images ({audit.strongest_rival}), and "
        f"{percent(audit.normalised_gain)} of what that rival left to gain."
    )
    if caution := gain_caution(audit):
        out.print(f"Caution: {caution}.")
    for one in audit.consistency:
        out.print(
            f"Against {one.what.replace('_', ' ')}: same answer {percent(one.same_answer)}, "
            f"accuracy {points(one.difference)} here."
        )
    if audit.place_bias is not None:
        letters = ", ".join(f"{letter} {count}" for letter, count in audit.place_bias.chosen.items())
        out.print(f"Letters chosen as shown: {letters} (even spread: p = {audit.place_bias.p_value:.3g}).")
    out.print()
