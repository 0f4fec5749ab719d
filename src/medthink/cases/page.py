"""One case as a self-contained HTML page: every image inside, nothing withheld visible until it is asked for.

The page holds no script and its policy allows none; every text of the case is escaped before it enters the template.
"""

from base64 import b64encode
from html import escape
from importlib.resources import files
from string import Template

from medthink.cases.case import Case, Image, ImageReference
from medthink.cases.images import prepare
from medthink.core.errors import DataError
from medthink.core.numbers import count_of


def case_page(case: Case, *, reveal: bool = False) -> str:
    """The page of a case, its withheld parts folded unless revealed."""
    template = Template(files("medthink.cases").joinpath("page.html").read_text(encoding="utf-8"))
    count = len(case.question.images)
    slots = zip(case.question.images, case.reference.images, strict=True)
    page = template.substitute(
        title=escape(case.title),
        facts=escape(f"{case.split} split · {count_of(count, 'image')}"),
        history=escape(case.question.history),
        images="\n".join(_figure(image, withheld) for image, withheld in slots),
        options="\n".join(_option(letter, text) for letter, text in case.question.options.items()),
        reference="\n".join(_reference(case)),
    )
    # No text of the case can hold the tag: all of it is escaped.
    return page.replace("<details", "<details open") if reveal else page


def _figure(image: Image, withheld: ImageReference) -> str:
    # The slot alone names the picture: an id or a file name may say more than the picture should.
    name = f"Image {image.slot}"
    caption = _paragraph(withheld.caption)
    labels = _pairs((("Modality", withheld.modality), ("Sub-modality", withheld.sub_modality), ("File", image.path)))
    return (
        f"<figure>{_picture(image, name)}<figcaption><span class=name>{name}</span>"
        f"<details><summary>Caption</summary>{caption}{labels}</details></figcaption></figure>"
    )


def _picture(image: Image, name: str) -> str:
    try:
        prepared = prepare(image.read(), name=image.path)
    except DataError as error:
        return f'<div class="absent" role="img" aria-label="{name}">{escape(error.problem)}</div>'
    source = f"data:{prepared.media_type};base64,{b64encode(prepared.data).decode()}"
    return f'<img src="{source}" width="{prepared.width}" height="{prepared.height}" alt="{name}">'


def _option(letter: str, text: str) -> str:
    return f'<li><span class="letter">{escape(letter)}</span> <span>{escape(text)}</span></li>'


def _reference(case: Case) -> list[str]:
    reference = case.reference
    answer = f'<p class="answer">{escape(reference.answer)} · {escape(reference.answer_text)}</p>'
    timeline = (
        f"{reference.timepoint_count} timepoints: {reference.interval_text}" if reference.is_longitudinal else "–"
    )
    labels = (
        ("ICD chapter", reference.icd_chapter),
        ("ICD block", reference.icd_block),
        ("ICD category", reference.icd_category),
        ("Longitudinal", timeline),
    )
    return [
        _details("Imaging findings", _paragraph(reference.findings)),
        _details("Answer", answer),
        _details("Discussion", _paragraph(reference.discussion)),
        _details("Labels", _pairs(labels)),
    ]


def _details(title: str, content: str) -> str:
    return f'<details class="block"><summary>{escape(title)}</summary>{content}</details>'


def _paragraph(text: str) -> str:
    return f'<p class="text">{escape(text) if text.strip() else "–"}</p>'


def _pairs(pairs: tuple[tuple[str, str], ...]) -> str:
    return (
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value) or '–'}</dd>" for name, value in pairs) + "</dl>"
    )
