"""One case to read: the question until its reader commits, then also the reference and others' answers.

A page about a case that is not revealed is made from its `Question` alone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from medthink.cases.case import Case
from medthink.web.app.benchmarks import LoadedSplit
from medthink.web.app.images import PageImage, show_image
from medthink.web.app.rendering import tell_time
from medthink.web.board.case_answers import ModelAnswers
from medthink.web.cases.answers import HumanAnswer
from medthink.web.cases.list_page import ExploreQuery, choose_cases
from medthink.web.runs.case_page import case_facts
from medthink.workflow.prediction import Prediction

CONFIDENCES = {1: "guessing", 2: "unsure", 3: "fairly sure", 4: "sure"}


class OthersAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Others' answers: readers and models, and the texts of the model with the number `shown`."""

    others: Sequence[HumanAnswer] = ()
    models: Sequence[ModelAnswers] = ()
    shown: int | None = None
    words: Prediction | None = None


class RevealedOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option with everyone's answers."""

    letter: str
    text: str
    is_gold: bool
    is_mine: bool
    models: int
    readers: int


class ModelLine(msgspec.Struct, frozen=True, kw_only=True):
    """One model's answer, and whether its steps can be read."""

    number: int
    name: str
    letter: str
    is_right: bool
    gives_words: bool


class StepPair(msgspec.Struct, frozen=True, kw_only=True):
    """One step as the model wrote it, next to the reference."""

    title: str
    model: str
    reference: str


class ModelSteps(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one model, next to the reference."""

    number: int
    name: str
    steps: tuple[StepPair, ...]


class Reveal(msgspec.Struct, frozen=True, kw_only=True):
    """All withheld data."""

    number: int
    answer: str
    mine: str
    confidence: str
    took: str
    options: tuple[RevealedOption, ...]
    models: int
    findings: str
    discussion: str
    facts: tuple[tuple[str, str], ...]
    said: tuple[ModelLine, ...]
    beside: ModelSteps | None


class ReadingPage(msgspec.Struct, frozen=True, kw_only=True):
    """One case to read; `reveal` is None until the reader has committed."""

    code: str
    history: str
    options: tuple[tuple[str, str], ...]
    images: tuple[PageImage, ...]
    confidences: tuple[tuple[int, str], ...]
    previous: str
    next: str
    query: ExploreQuery
    reveal: Reveal | None


def make_reading_page(
    bench: LoadedSplit,
    case: Case,
    mine: Mapping[int, HumanAnswer],
    query: ExploreQuery,
    told: OthersAnswers,
) -> ReadingPage:
    """The case as its reader may see it now; `told` is empty before the reveal."""
    answer = mine.get(case.id)
    codes = [bench.code(one.id) for one in choose_cases(bench, mine, query, told.models)]
    here = codes.index(bench.code(case.id)) if bench.code(case.id) in codes else -1
    images = tuple(show_image(bench, image, number) for number, image in enumerate(case.question.images, start=1))
    if answer is not None:
        images = tuple(_label(image, case) for image in images)
    return ReadingPage(
        code=bench.code(case.id),
        history=case.question.history,
        options=tuple(case.question.options.items()),
        images=images,
        confidences=tuple(CONFIDENCES.items()),
        previous=codes[here - 1] if here > 0 else "",
        next=codes[here + 1] if here + 1 < len(codes) else "",
        query=query,
        reveal=None if answer is None else _reveal(case, answer, told),
    )


def _label(image: PageImage, case: Case) -> PageImage:
    known = case.reference.images
    if image.number > len(known):
        return image
    label = known[image.number - 1]
    return msgspec.structs.replace(image, group=label.modality, caption=label.caption)


def _reveal(case: Case, answer: HumanAnswer, told: OthersAnswers) -> Reveal:
    reference = case.reference
    said = [_line(model, case) for model in told.models if case.id in model.letters]
    by_models = Counter(line.letter for line in said)
    by_readers = Counter(one.letter for one in told.others if one.case == case.id)
    options = tuple(
        RevealedOption(
            letter=letter,
            text=text,
            is_gold=letter == reference.answer,
            is_mine=letter == answer.letter,
            models=by_models[letter],
            readers=by_readers[letter],
        )
        for letter, text in case.question.options.items()
    )
    shown = next((line for line in said if line.number == told.shown), None)
    return Reveal(
        number=case.id,
        answer=reference.answer,
        mine=answer.letter or "",
        confidence=CONFIDENCES.get(answer.confidence or 0, ""),
        took="" if answer.seconds is None else tell_time(answer.seconds),
        options=options,
        models=len(said),
        findings=reference.findings,
        discussion=reference.discussion,
        facts=tuple(case_facts(case)),
        said=tuple(said),
        beside=_beside(shown, told.words, case) if shown and told.words else None,
    )


def _line(model: ModelAnswers, case: Case) -> ModelLine:
    letter = model.letters[case.id]
    return ModelLine(
        number=model.number,
        name=model.name,
        letter=letter or "",
        is_right=letter == case.reference.answer,
        gives_words=model.gives_words,
    )


def _beside(line: ModelLine, words: Prediction, case: Case) -> ModelSteps:
    return ModelSteps(number=line.number, name=line.name, steps=tuple(_pair_steps(words, case)))


def _pair_steps(words: Prediction, case: Case) -> Iterator[StepPair]:
    """Findings with captions, the summary with the radiologist's findings, the reasoning with the discussion."""
    twi, reference = words.prediction_twi, case.reference
    findings = (twi.step1_per_image_findings if twi else None) or ()
    for place, (text, label) in enumerate(zip(findings, reference.images, strict=False)):
        yield StepPair(title=f"Step 1 · image {place + 1}", model=text or "", reference=label.caption)
    if twi and twi.step2_integrated_summary:
        yield StepPair(title="Step 2 · summary", model=twi.step2_integrated_summary, reference=reference.findings)
    reasoning = words.prediction_rationale or (twi.step3_differential_reasoning if twi else None)
    if reasoning:
        title = "Step 3 · differential" if twi else "Rationale"
        yield StepPair(title=title, model=reasoning, reference=reference.discussion)
