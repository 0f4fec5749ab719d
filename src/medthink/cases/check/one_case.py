"""What can be wrong with a case by itself, its files' content aside."""

import re
from collections.abc import Iterator

from medthink.cases.case import LETTERS, MODALITIES, Case, Image
from medthink.cases.check.report import Finding
from medthink.cases.check.texts import contains_phrase
from medthink.cases.icd import icd_problems
from medthink.cases.stores import path_problem

_LETTERS = set(LETTERS)
_MODALITIES = frozenset(MODALITIES)
_PATH = re.compile(r"images/case(\d+)/(.+)\.[^./]+")
_ICD_CODES = {
    "malformed": "icd-malformed",
    "unknown": "icd-unknown",
    "title": "icd-title-differs",
    "contradiction": "icd-contradiction",
}


def check_case(case: Case, history_words: list[str]) -> Iterator[Finding]:
    """Every broken invariant that the case's own row shows."""
    yield from _check_texts(case, history_words)
    yield from _check_slots(case)
    yield from _check_options(case)
    yield from _check_answer(case)
    yield from _check_labels(case)
    yield from _check_timeline(case)


def _check_texts(case: Case, history_words: list[str]) -> Iterator[Finding]:
    reference = case.reference
    if not history_words:
        yield Finding("history-empty", "CLINICAL_HISTORY", "no word in it")
    for field, text in (("IMAGING_FINDINGS", reference.findings), ("discussion", reference.discussion)):
        if not text.strip():
            yield Finding("reference-empty", field, "empty")
    if contains_phrase(history_words, reference.answer_text):
        yield Finding("answer-in-history", "CLINICAL_HISTORY", f'contains "{reference.answer_text[:80]}"')


def _check_slots(case: Case) -> Iterator[Finding]:
    images = case.question.images
    if case.image_count != len(images):
        yield Finding("image-count-wrong", "image_count", f"{case.image_count} declared, {len(images)} filled")
    if not images:
        yield Finding("image-none", "image_01_path", "no slot is filled")
    elif images[-1].slot != len(images):
        missing = sorted(set(range(1, images[-1].slot)) - {image.slot for image in images})
        yield Finding("slot-gap", f"image_{missing[0]:02d}_id", f"empty before slot {images[-1].slot:02d}: {missing}")
    prefix = f"images/case{case.id:05d}/"
    for image, withheld in zip(images, case.reference.images, strict=True):
        if not image.path.startswith(f"{prefix}{image.id}."):
            yield from _check_path(case, image)
        if withheld.modality not in _MODALITIES:
            field = f"image_{image.slot:02d}_modality"
            yield Finding("modality-unknown", field, f'"{withheld.modality[:60]}"')
        if not withheld.caption or withheld.caption.isspace():
            yield Finding("reference-empty", f"image_{image.slot:02d}_caption", "empty")


def _check_path(case: Case, image: Image) -> Iterator[Finding]:
    """The careful comparison, by number: `case00099` and `case99` both agree with "Case number 99"."""
    if path_problem(image.path):
        return  # an unsafe path, which `files` reports
    field = f"image_{image.slot:02d}_path"
    match = _PATH.fullmatch(image.path)
    if match is None:
        yield Finding("image-path-disagrees", field, f'"{image.path[:120]}" is not images/case<number>/<id>.<ext>')
    elif int(match[1]) != case.id:
        yield Finding("image-path-disagrees", field, f"case {int(match[1])} in the path, {case.id} in the title")
    elif match[2] != image.id:
        yield Finding("image-path-disagrees", field, f'"{match[2][:60]}" in the path, "{image.id[:60]}" in the id')


def _check_options(case: Case) -> Iterator[Finding]:
    options = case.question.options
    if options.keys() != _LETTERS:
        yield Finding("options-not-five", "options", f"letters: {', '.join(sorted(options)) or 'none'}")
    texts = [text.casefold().strip() for text in options.values()]
    for letter, text in zip(options, texts, strict=True):
        if not text:
            yield Finding("option-empty", f"options.{letter}", "empty")
    if len(set(texts)) < len(texts):
        seen: dict[str, str] = {}
        for letter, text in zip(options, texts, strict=True):
            if text and text in seen:
                yield Finding("options-not-distinct", f"options.{letter}", f'same as {seen[text]}: "{text[:80]}"')
            seen.setdefault(text, letter)


def _check_answer(case: Case) -> Iterator[Finding]:
    options, reference = case.question.options, case.reference
    if reference.answer not in options:
        yield Finding("answer-not-an-option", "correct_answer", f'"{reference.answer[:20]}"')
    elif reference.answer_text != options[reference.answer]:
        due = options[reference.answer]
        yield Finding("answer-text-differs", "correct_answer_text", f'"{reference.answer_text[:60]}", not "{due[:60]}"')


def _check_labels(case: Case) -> Iterator[Finding]:
    reference = case.reference
    for problem in icd_problems(reference.icd_chapter, reference.icd_block, reference.icd_category):
        yield Finding(_ICD_CODES[problem.kind], problem.field, problem.detail)


def _check_timeline(case: Case) -> Iterator[Finding]:
    reference = case.reference
    flag, several, interval = (
        reference.is_longitudinal,
        reference.timepoint_count >= 2,
        bool(reference.interval_text.strip()),
    )
    if not (flag == several == interval) or reference.timepoint_count < 1:
        detail = (
            f'{str(flag).lower()}, {reference.timepoint_count} timepoints, interval "{reference.interval_text[:40]}"'
        )
        yield Finding("longitudinal-contradiction", "is_longitudinal", detail)
