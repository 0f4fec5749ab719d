"""`medthink data show`: one case, in the terminal or as a page."""

from pathlib import Path

import click
from msgspec import to_builtins
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.cli import show
from medthink.core.files import write_atomic

_WIDEST = 100


@click.command("show")
@click.argument("path", type=click.Path())
@click.argument("case_number", metavar="CASE", type=int)
@click.option("--reveal", is_flag=True, help="Show the withheld parts too: captions, findings, answer, discussion.")
@click.option(
    "--html", type=click.Path(), help="Write a self-contained page instead; withheld parts are folded unless revealed."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the withheld parts only with --reveal.")
def command(path: str, case_number: int, reveal: bool, html: str | None, as_json: bool) -> None:
    """Show one case, by its number: history, images, options.

    Example: medthink data show bench/ 12 --html case.html
    """
    case = Benchmark.open(path).case(case_number)
    if html is not None:
        from medthink.web.case_files import case_file

        write_atomic(Path(html), [case_file(case, reveal=reveal).encode()])
        show.console().print(Text(f"Page: {html}"))
        return
    if as_json:
        show.print_json(_as_json(case, reveal=reveal))
        return
    _print_case(case, reveal=reveal)


def _as_json(case: Case, *, reveal: bool) -> dict[str, object]:
    images = [{"slot": one.slot, "path": one.path, "there": one.store.has(one.path)} for one in case.question.images]
    told: dict[str, object] = {
        "case": case.id,
        "title": case.title,
        "split": case.split,
        "history": case.question.history,
        "images": images,
        "options": case.question.options,
    }
    return told | {"reference": to_builtins(case.reference)} if reveal else told


def _print_case(case: Case, *, reveal: bool) -> None:
    console = show.console()
    console.width = min(console.width, _WIDEST)
    count = len(case.question.images)
    console.print(Text(show.plain(f"{case.title} · {case.split} · {count} images"), style="bold"))
    _print_text(console, "History", case.question.history)
    _print_images(console, case, reveal=reveal)
    _print_heading(console, "Options")
    for letter, text in case.question.options.items():
        console.print(Padding(Text(show.plain(f"{letter}  {text}")), (0, 0, 0, 2)))
    if reveal:
        _print_reference(console, case)
    else:
        console.print(Text("\nWithheld: captions, findings, answer, discussion, labels (--reveal shows them).", "dim"))


def _print_images(console: Console, case: Case, *, reveal: bool) -> None:
    columns = ["slot", "file", "there"] + (["modality", "sub-modality", "caption"] if reveal else [])
    rows = []
    for image, withheld in zip(case.question.images, case.reference.images, strict=True):
        there = "yes" if image.store.has(image.path) else "no"
        labels = (withheld.modality, withheld.sub_modality, withheld.caption) if reveal else ()
        rows.append((image.slot, image.path, there, *labels))
    _print_heading(console, "Images")
    console.print(show.table("", columns, rows, right=[0]))


def _print_reference(console: Console, case: Case) -> None:
    reference = case.reference
    _print_text(console, "Findings", reference.findings)
    _print_text(console, "Answer", f"{reference.answer}  {reference.answer_text}")
    _print_text(console, "Discussion", reference.discussion)
    labels = "\n".join((reference.icd_chapter, reference.icd_block, reference.icd_category))
    _print_text(console, "ICD-10", labels)
    timeline = (
        f"{reference.timepoint_count} timepoints, {reference.interval_text}" if reference.is_longitudinal else "no"
    )
    _print_text(console, "Longitudinal", timeline)


def _print_text(console: Console, title: str, text: str) -> None:
    _print_heading(console, title)
    console.print(Padding(Text(show.plain(text) or "–"), (0, 0, 0, 2)))


def _print_heading(console: Console, title: str) -> None:
    console.print(Text(f"\n{title}", style="bold"))
