"""A case and a benchmark as a notebook shows them: the reference is folded until the reader opens it."""

from base64 import b64encode
from typing import TYPE_CHECKING

from medthink.cases.case import Case, Image
from medthink.cases.images.content import JPEG, as_shown
from medthink.core.errors import DataError
from medthink.core.markup import Markup, fold_section, html_table, joined, tag

if TYPE_CHECKING:
    from medthink.cases.benchmark import Benchmark
    from medthink.cases.check.report import CheckReport

_SIDE, _QUALITY = 176, 72
_TEXT = "white-space: pre-line; max-width: 46rem"
_FILM = "display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: end"


def thumbnail(image: Image, name: str) -> Markup:
    """The image made small, or the reason why it cannot be shown."""
    try:
        small = as_shown(image.read(), accepts=frozenset({JPEG}), max_side=_SIDE, quality=_QUALITY, name=image.path)
    except DataError as error:
        return tag("span", error.problem, class_="absent", role="img", aria_label=name)
    source = f"data:{small.media_type};base64,{b64encode(small.data).decode()}"
    return tag("img", src=source, width=small.width, height=small.height, alt=name)


def case_card(case: Case) -> Markup:
    """The question with its images, and the reference folded."""
    question = case.question
    return tag(
        "div",
        tag("p", tag("b", f"Case {case.id}"), f" · {case.split} split · images: {len(question.images)}"),
        tag("p", question.history, style=_TEXT),
        tag("div", *(_card_figure(image) for image in question.images), style=_FILM),
        html_table(("", ""), question.options.items()),
        fold_section("Reference: answer, captions, findings, discussion", *_card_reference(case)),
    )


def benchmark_card(benchmark: "Benchmark") -> Markup:
    """The benchmark's path, and the number of cases in each split."""
    rows = [(name, f"{len(benchmark[name]):,}") for name in benchmark.splits]
    return joined((tag("p", tag("b", "Benchmark"), f" {benchmark.path}"), html_table(("split", "cases"), rows)))


def check_card(report: "CheckReport") -> Markup:
    """The result of a check, one row per code."""
    from medthink.cases.check.defects import DEFECTS

    rows = [
        (DEFECTS[code].severity, code, count, DEFECTS[code].meaning, DEFECTS[code].remedy)
        for code, count in report.counts.items()
    ]
    head = tag("p", f"Cases: {report.cases:,} · errors: {len(report.errors):,} · warnings: {len(report.warnings):,}")
    return joined((head, html_table(("", "code", "count", "meaning", "remedy"), rows) if rows else ""))


def _card_figure(image: Image) -> Markup:
    # The slot alone names the picture: an id or a file name may say more than the picture should.
    name = f"Image {image.slot}"
    return tag("figure", thumbnail(image, name), tag("figcaption", name), style="margin: 0")


def _card_reference(case: Case) -> list[Markup]:
    reference = case.reference
    captions = [
        (f"Image {image.slot}", known.modality, known.caption)
        for image, known in zip(case.question.images, reference.images, strict=True)
    ]
    return [
        tag("p", tag("b", f"{reference.answer} · {reference.answer_text}")),
        html_table(("", "modality", "caption"), captions),
        tag("p", reference.findings, style=_TEXT),
        tag("p", reference.discussion, style=_TEXT),
    ]
