"""Cases as one self-contained HTML file: the viewer's parts of a case, with styles and images inside."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from medthink.cases.case import Case, Image, ImageReference
from medthink.cases.images.content import as_shown
from medthink.core.errors import DataError
from medthink.core.numbers import as_usd, count_of
from medthink.runs.trace import CaseRow, Trace
from medthink.web.app.benchmarks import BenchmarkCache
from medthink.web.app.rendering import NONE, Site, render
from medthink.web.runs.case_page import CasePage, ImageCell, OptionLine, case_facts, make_case_page
from medthink.web.runs.index import IndexedRun
from medthink.web.runs.run_page import CasesQuery

# Further cases are only listed: each comes with its images and all its texts.
MOST_CASES = 100
_SMALL = 320
_SITE = Site(links=(), is_static=True, is_file=True)
_RIGHT = {True: "right", False: "wrong", None: NONE}


class CaseFile(msgspec.Struct, frozen=True, kw_only=True):
    """A case of a benchmark, with its withheld parts folded."""

    title: str
    about: str
    is_revealed: bool
    history: str
    options: tuple[OptionLine, ...]
    images: tuple[ImageCell, ...]
    facts: tuple[tuple[str, str], ...]
    findings: str
    discussion: str
    line: None = None
    other: None = None


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """Cases of a run, listed and then each with its calls."""

    title: str
    about: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    cases: tuple[CasePage, ...]


def case_file(case: Case, *, reveal: bool = False) -> str:
    """The page of a case, its withheld parts folded unless revealed."""
    question, reference = case.question, case.reference
    slots = zip(question.images, reference.images, strict=True)
    page = CaseFile(
        title=case.title,
        about=f"{case.split} split · {count_of(len(question.images), 'image')}",
        is_revealed=reveal,
        history=question.history,
        options=tuple(
            OptionLine(letter=letter, shown="", text=text, is_gold=False, is_answer=False)
            for letter, text in question.options.items()
        ),
        images=tuple(_embed(image, _cell(image, known)) for image, known in slots),
        facts=tuple(case_facts(case)),
        findings=reference.findings,
        discussion=reference.discussion,
    )
    return render("file_case.html", page, _SITE)


def run_file(trace: Trace, rows: Sequence[CaseRow], data: Path | None = None) -> str:
    """The page of the cases in the rows: prompts and replies, and nothing that is withheld."""
    run = IndexedRun(trace.path, trace.path.name, BenchmarkCache(data))
    made = (make_case_page(run, row.case, row.sample, (), {}, CasesQuery()) for row in rows[:MOST_CASES])
    cases = tuple(_without_reference(page, run) for page in made if page is not None)
    manifest, numbers = trace.manifest, {row.case for row in rows}
    left_out = len(rows) - len(cases)
    notes = [f"{count_of(left_out, 'case')} of the list are not shown in full."] if left_out else []
    page = RunFile(
        title=f"{f'Case {rows[0].case}' if len(numbers) == 1 else 'Cases'} of {trace.path.name}",
        about=f"{manifest.model} · {manifest.task} · {manifest.condition.label()}",
        notes=tuple([*([trace.doubt] if trace.doubt else []), *notes]),
        columns=("case", "sample", "state", "answer", "right or wrong", "calls", "cost"),
        rows=tuple(map(_cells, rows)),
        cases=cases,
    )
    return render("file_run.html", page, _SITE)


def _cells(row: CaseRow) -> tuple[str, ...]:
    cost = as_usd(row.cost_usd, is_least=row.is_least_cost)
    return (
        str(row.case), str(row.sample), row.state, row.answer or NONE, _RIGHT[row.is_right], str(row.calls), cost,
    )  # fmt: skip


def _without_reference(page: CasePage, run: IndexedRun) -> CasePage:
    """The page without captions, findings, discussion and the right answer, and with small images inside."""
    found = [(run.bench.image(cell.id) if run.bench else None, cell) for cell in page.images]
    return replace(
        page,
        line=replace(page.line, gold="", gold_text=""),
        options=tuple(replace(option, is_gold=False) for option in page.options),
        images=tuple(
            _embed(image, replace(cell, group="", caption=""), _SMALL) for image, cell in found if image is not None
        ),
        facts=(),
        findings="",
        discussion="",
    )


def _cell(image: Image, known: ImageReference) -> ImageCell:
    # The slot alone names the image: an id or a file name may say more than the picture should.
    labels = (known.modality, known.sub_modality, image.path)
    return ImageCell(
        id="", number=image.slot, width=0, height=0, caption=known.caption or NONE,
        group=" · ".join(filter(None, labels)), is_sent=True,
    )  # fmt: skip


def _embed(image: Image, cell: ImageCell, max_side: int | None = None) -> ImageCell:
    """The image as part of the page, or the reason why it cannot be shown."""
    try:
        made = as_shown(image.read(), max_side=max_side, name=image.path)
    except DataError as error:
        return replace(cell, problem=error.problem)
    source = f"data:{made.media_type};base64,{b64encode(made.data).decode()}"
    return replace(cell, source=source, width=made.width, height=made.height, problem="")
