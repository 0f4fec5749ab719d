"""Checks of a single case, without the content of its files."""

import re
from collections.abc import Iterator

from medthink.cases.case import LETTERS, MAX_IMAGES, MODALITIES, UNKNOWN_MODALITY, Case, Image
from medthink.cases.check.report import FoundDefect
from medthink.cases.check.texts import contains_phrase, normalised_text, plurals
from medthink.cases.icd import icd_problems
from medthink.cases.images.stores import path_problem

_LETTERS = set(LETTERS)
_MODALITIES = frozenset(MODALITIES)
_PATH = re.compile(r"images/case(\d+)/(.+)\.[^./]+")
_IMAGE_COLUMN = re.compile(r"image_\d+(?:_.*)?")
_ICD_CODES = {
    "missing": "icd-missing",
    "malformed": "icd-malformed",
    "unknown": "icd-unknown",
    "title": "icd-title-differs",
    "contradiction": "icd-contradiction",
}


def check_case(case: Case, history: bytes) -> list[FoundDefect]:
    """Every broken invariant in the case's own row; `history` is its history as `normalised_words` returns it."""
    # Each check takes the list instead of yielding: most cases have nothing to report, and 8,000 wait.
    found: list[FoundDefect] = []
    _check_texts(case, history, found)
    _check_slots(case, found)
    _check_images(case, found)
    _check_options(case, found)
    _check_answer(case, found)
    _check_labels(case, found)
    _check_timeline(case, found)
    return found


def _check_texts(case: Case, history: bytes, found: list[FoundDefect]) -> None:
    reference = case.reference
    if not history or history.isspace():
        found.append(FoundDefect("history-empty", "CLINICAL_HISTORY", "contains no words"))
    if _is_blank(reference.findings):
        found.append(FoundDefect("reference-empty", "IMAGING_FINDINGS", "empty"))
    if _is_blank(reference.discussion):
        found.append(FoundDefect("reference-empty", "discussion", "empty"))
    for form in (reference.answer_text, *plurals(reference.answer_text)):
        if contains_phrase(history, form):
            found.append(FoundDefect("answer-in-history", "CLINICAL_HISTORY", f'contains "{form[:80]}"'))
            break


def _check_slots(case: Case, found: list[FoundDefect]) -> None:
    images = case.question.images
    if case.image_count != len(images):
        detail = f"{case.image_count} declared, {len(images)} filled"
        found.append(FoundDefect("image-count-wrong", "image_count", detail))
    if not images:
        found.append(FoundDefect("image-none", "image_01_path", "no slot is filled"))
    elif images[-1].slot != len(images):
        missing = sorted(set(range(1, images[-1].slot)) - {image.slot for image in images})
        detail = f"empty before slot {images[-1].slot:02d}: {missing}"
        found.append(FoundDefect("slot-gap", f"image_{missing[0]:02d}_id", detail))
    for column in filter(_IMAGE_COLUMN.fullmatch, case.extra):
        found.append(FoundDefect("image-column-unknown", column, f"not one of image_01_* to image_{MAX_IMAGES}_*"))


def _check_images(case: Case, found: list[FoundDefect]) -> None:
    folder = f"images/case{case.id:05d}/"
    for image, withheld in zip(case.question.images, case.reference.images, strict=True):
        if image.path != f"{folder}{image.id}.jpg" or not image.id:  # nearly every path is of this form
            found.extend(_check_path(case, image))
        if withheld.modality == UNKNOWN_MODALITY:
            found.append(FoundDefect("modality-not-stated", f"image_{image.slot:02d}_modality", "unknown"))
        elif withheld.modality not in _MODALITIES:
            detail = f'"{withheld.modality[:60]}"'
            found.append(FoundDefect("modality-unknown", f"image_{image.slot:02d}_modality", detail))
        if not withheld.caption.strip():
            found.append(FoundDefect("reference-empty", f"image_{image.slot:02d}_caption", "empty"))
    captions = {withheld.caption.strip() for withheld in case.reference.images}
    if len(case.reference.images) > 1 and len(captions) == 1 and "" not in captions:
        detail = f"the same for all {len(case.reference.images)} images"
        found.append(FoundDefect("caption-repeated", "image_01_caption", detail))


def _check_path(case: Case, image: Image) -> Iterator[FoundDefect]:
    """The careful comparison, by number: `case00099` and `case99` both agree with "Case number 99"."""
    if path_problem(image.path):
        return  # an unsafe path, which `files` reports
    field = f"image_{image.slot:02d}_path"
    match = _PATH.fullmatch(image.path)
    if match is None:
        yield FoundDefect("image-path-disagrees", field, f'"{image.path[:120]}" is not images/case<number>/<id>.<ext>')
    elif int(match[1]) != case.id:
        yield FoundDefect("image-path-disagrees", field, f"case {int(match[1])} in the path, {case.id} in the title")
    elif match[2] != image.id:
        yield FoundDefect("image-path-disagrees", field, f'"{match[2][:60]}" in the path, "{image.id[:60]}" in the id')


def _check_options(case: Case, found: list[FoundDefect]) -> None:
    options = case.question.options
    if options.keys() != _LETTERS:
        found.append(FoundDefect("options-not-five", "options", f"letters: {', '.join(sorted(options)) or 'none'}"))
    if len({*map(normalised_text, options.values())} - {""}) < len(options):
        found.extend(_explain_options(options))


def _explain_options(options: dict[str, str]) -> Iterator[FoundDefect]:
    """Which options are empty, and which repeat an earlier one."""
    seen: dict[str, str] = {}
    for letter, written in options.items():
        text = normalised_text(written)
        if not text:
            yield FoundDefect("option-empty", f"options.{letter}", "empty")
        elif text in seen:
            yield FoundDefect("options-not-distinct", f"options.{letter}", f'same as {seen[text]}: "{text[:80]}"')
        seen.setdefault(text, letter)


def _check_answer(case: Case, found: list[FoundDefect]) -> None:
    options, reference = case.question.options, case.reference
    if reference.answer not in options:
        found.append(FoundDefect("answer-not-an-option", "correct_answer", f'"{reference.answer[:20]}"'))
    elif reference.answer_text != options[reference.answer]:
        detail = f'"{reference.answer_text[:60]}", not "{options[reference.answer][:60]}"'
        found.append(FoundDefect("answer-text-differs", "correct_answer_text", detail))


def _check_labels(case: Case, found: list[FoundDefect]) -> None:
    reference = case.reference
    for problem in icd_problems(reference.icd_chapter, reference.icd_block, reference.icd_category):
        found.append(FoundDefect(_ICD_CODES[problem.kind], problem.field, problem.detail))


def _check_timeline(case: Case, found: list[FoundDefect]) -> None:
    reference = case.reference
    several, has_interval = reference.timepoint_count >= 2, not _is_blank(reference.interval_text)
    if reference.timepoint_count < 1 or not reference.is_longitudinal == several == has_interval:
        flag, count = str(reference.is_longitudinal).lower(), reference.timepoint_count
        detail = f'{flag}, {count} timepoints, interval "{reference.interval_text[:40]}"'
        found.append(FoundDefect("longitudinal-contradiction", "is_longitudinal", detail))
    images = len(case.question.images)
    if images and reference.timepoint_count > images:
        detail = f"{reference.timepoint_count} timepoints, {images} images"
        found.append(FoundDefect("timepoints-exceed-images", "timepoint_count", detail))


def _is_blank(text: str) -> bool:
    return not text or text.isspace()
