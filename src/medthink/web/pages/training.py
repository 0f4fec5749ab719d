"""The training of readers as a page: one sentence with a known answer at a time, then feedback, then the result."""

from collections.abc import Mapping

import msgspec

from medthink.cases.case import Case
from medthink.judge.cells import UNSURE
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Label
from medthink.readers.training import Feedback, Training, TrainingItem, TrainingResult, give_feedback, mark_training
from medthink.web.library import OpenBenchmark
from medthink.web.pages.images import PageImage, show_image


class TrainingCase(msgspec.Struct, frozen=True, kw_only=True):
    """The current item with its case: the sentence with the text before and after it, and the expert's material."""

    code: str
    history: str
    options: tuple[tuple[str, str], ...]
    images: tuple[PageImage, ...]
    diagnosis: str
    findings: str
    before: str
    sentence: str
    behind: str
    choices: tuple[str, ...]


class TrainingPage(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's position in training: an item to judge, the feedback on the last one, or the result."""

    token: str
    name: str
    number: int
    total: int
    item: TrainingCase | None
    feedback: Feedback | None
    result: TrainingResult | None


def make_training_page(
    token: str,
    name: str,
    training: Training,
    answers: Mapping[str, str],
    *,
    cases: Mapping[int, Case],
    bench: OpenBenchmark,
    seen: str = "",
) -> TrainingPage:
    """The page; `seen` is the code of the item whose feedback is requested."""
    left = [item for item in training.items if item.code not in answers]
    said = read_labels(answers)
    feedback = (
        give_feedback(seen, training.truths[seen], said[seen]) if seen in training.truths and seen in said else None
    )
    item = left[0] if left and feedback is None else None
    is_over = not left and feedback is None
    return TrainingPage(
        token=token,
        name=name,
        number=len(training.items) - len(left) + (0 if feedback else 1),
        total=len(training.items),
        item=_show(item, cases[item.case], bench) if item else None,
        feedback=feedback,
        result=mark_training(training.truths, said) if is_over else None,
    )


def read_labels(answers: Mapping[str, str]) -> dict[str, Label | None]:
    """The answers as labels; "unsure" counts as none."""
    return {code: None if label == UNSURE else label for code, label in answers.items()}


def label_choices(what: str) -> tuple[str, ...]:
    """The words to choose from for the leading label of a kind."""
    kind = KINDS[what]
    return next(column.choices for column in kind.columns if kind.true_label in column.choices)


def _show(item: TrainingItem, case: Case, bench: OpenBenchmark) -> TrainingCase:
    (unit,) = item.units.units
    whole = item.source.parts[unit.part]
    images = (show_image(bench, image, number) for number, image in enumerate(case.question.images, start=1))
    return TrainingCase(
        code=item.code,
        history=case.question.history,
        options=tuple(case.question.options.items()),
        images=tuple(image for image in images if not image.problem),
        diagnosis=case.reference.answer_text,
        findings="\n\n".join([case.reference.findings, *(one.caption for one in case.reference.images)]),
        before=whole[: unit.start],
        sentence=unit.text,
        behind=whole[unit.end :],
        choices=label_choices(item.source.what),
    )
