"""`medthink reading mark`: what was right in training lists, and why."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from medthink.cli.show import print_json, say
from medthink.core.errors import Declined

if TYPE_CHECKING:
    from medthink.readers.training_lists import MarkedReader


@click.command(name="mark")
@click.argument("tables", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--key", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The key (FOLDER-key.json)."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(tables: tuple[Path, ...], key: Path, as_json: bool) -> None:
    """Mark training lists, and write each reader's feedback.

    Next to every list NAME.csv, a file NAME-feedback.csv says for each sentence what was expected and why. A reader
    passes with four out of five right; unanswered counts as wrong. If anyone did not pass, the exit code is 1.

    \b
    Example: medthink reading mark training/anna.xlsx training/ben.xlsx --key training-key.json
    """
    from msgspec import to_builtins

    from medthink.readers.training_lists import mark_tables, read_training_key, write_feedback

    marked = mark_tables(tables, read_training_key(key))
    for path, one in zip(tables, marked, strict=True):
        write_feedback(path.with_name(f"{path.stem}-feedback{path.suffix}"), one)
        for problem in one.problems:
            say(problem, stderr=True)
    if as_json:
        print_json([to_builtins(one) for one in marked])
    else:
        for one in marked:
            _show(one)
    failed = [one.reader for one in marked if not one.result.is_passed]
    if failed:
        raise Declined(
            f"not passed: {', '.join(failed)}", remedy="discuss the feedback, then train with another --seed"
        )


def _show(marked: "MarkedReader") -> None:
    result = marked.result
    word = "passed" if result.is_passed else "NOT PASSED"
    say(f"{marked.reader}: {result.right} of {len(result.feedback)} right, {result.needed} needed: {word}")
    for one in result.feedback:
        if not one.is_right:
            say(f"  “{marked.texts.get(one.code, '')}” is {one.expected}; answered: {one.said or 'nothing'}")
            say(f"    {one.why}")
