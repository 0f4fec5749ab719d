"""The case explorer: cases to read blind, and what is known of them once the reader has committed to an answer.

A page about a case that is not revealed is made from its `Question` alone. Case numbers, titles, modalities and codes
belong to the reference: a case is known by a code, and filters over them find only cases that are revealed already.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
import numpy as np

from medthink.cases.case import Case, Image
from medthink.core.errors import MedThinkError
from medthink.stats.estimate import Measured
from medthink.stats.intervals import rate_interval
from medthink.web.human_answers import HumanAnswer
from medthink.web.library import OpenBenchmark
from medthink.web.pages.marks import Interval, place_rate, tell_time
from medthink.web.pages.query import Query
from medthink.web.renditions import image_size

CONFIDENCES = {1: "guessing", 2: "unsure", 3: "fairly sure", 4: "sure"}
PER_PAGE = 60
ModelLetters = Mapping[str, Mapping[int, str | None]]
"""The letter that each model gave for each case."""


class ExploreQuery(Query, frozen=True, kw_only=True):
    """What the cases are filtered by; modality and chapter find revealed cases alone."""

    state: str = ""
    images: str = ""
    modality: str = ""
    chapter: str = ""
    page: str = ""


class CaseCard(msgspec.Struct, frozen=True, kw_only=True):
    """A case in the list: what a reader may see of it, and the rest when it is revealed."""

    code: str
    history: str
    thumbs: tuple[str, ...]
    images: int
    is_revealed: bool
    number: int | None = None
    diagnosis: str = ""
    modalities: str = ""
    result: str = ""


class ExplorePage(msgspec.Struct, frozen=True, kw_only=True):
    """The cases that the query asks for, a page of them."""

    name: str
    query: ExploreQuery
    cards: tuple[CaseCard, ...]
    found: int
    total: int
    revealed: int
    modalities: tuple[str, ...]
    chapters: tuple[str, ...]
    previous: str
    next: str


class BlindImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image of the grid; group and caption are empty before the reveal."""

    id: str
    number: int
    width: int
    height: int
    problem: str
    group: str = ""
    caption: str = ""


class RevealedOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option with what everybody said of it."""

    letter: str
    text: str
    is_gold: bool
    is_mine: bool
    models: int
    readers: int


class Reveal(msgspec.Struct, frozen=True, kw_only=True):
    """All that was withheld."""

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
    wrong_models: tuple[str, ...]


class ReadingPage(msgspec.Struct, frozen=True, kw_only=True):
    """One case to read; `reveal` is None until the reader has committed."""

    code: str
    history: str
    options: tuple[tuple[str, str], ...]
    images: tuple[BlindImage, ...]
    confidences: tuple[tuple[int, str], ...]
    previous: str
    next: str
    query: ExploreQuery
    reveal: Reveal | None


class ReadersPage(msgspec.Struct, frozen=True, kw_only=True):
    """The human baseline: what people answered, beside the models on the same cases."""

    name: str
    answers: int
    readers: int
    cases: int
    accuracy: Interval | None
    median_seconds: str
    by_confidence: tuple[tuple[str, int, str], ...]
    models: tuple[tuple[str, Interval], ...]


def make_explore_page(
    bench: OpenBenchmark, name: str, mine: Mapping[int, HumanAnswer], query: ExploreQuery
) -> ExplorePage:
    """The list, filtered; what is withheld is looked at only for cases that are revealed."""
    found = choose_cases(bench, mine, query)
    page = max(1, int(query.page)) if query.page.isdecimal() else 1
    start = (page - 1) * PER_PAGE
    known = [bench.cases[number] for number in mine if number in bench.cases]
    return ExplorePage(
        name=name,
        query=query,
        cards=tuple(_card(bench, case, mine.get(case.id)) for case in found[start : start + PER_PAGE]),
        found=len(found),
        total=len(bench.cases),
        revealed=len(known),
        modalities=tuple(sorted({one for case in known for one in case.modalities})),
        chapters=tuple(sorted({case.reference.icd_chapter for case in known if case.reference.icd_chapter})),
        previous=query.encode(page=str(page - 1)) if page > 1 else "",
        next=query.encode(page=str(page + 1)) if start + PER_PAGE < len(found) else "",
    )


def choose_cases(bench: OpenBenchmark, mine: Mapping[int, HumanAnswer], query: ExploreQuery) -> list[Case]:
    """The cases that the query asks for, in the order of their codes: that of the file may tell something."""
    ordered = sorted(bench.cases.values(), key=lambda case: bench.code(case.id))
    return [case for case in ordered if _fits(case, mine.get(case.id), query)]


def _fits(case: Case, answer: HumanAnswer | None, query: ExploreQuery) -> bool:
    question = case.question
    text = f"{question.history} {' '.join(question.options.values())}".casefold()
    if not all(word in text for word in query.words):
        return False
    if query.state and (query.state == "revealed") != (answer is not None):
        return False
    if query.images and not _in_bin(len(question.images), query.images):
        return False
    if not (query.modality or query.chapter):
        return True
    return (
        answer is not None
        and query.modality in ("", *case.modalities)
        and query.chapter in ("", case.reference.icd_chapter)
    )


def _in_bin(count: int, words: str) -> bool:
    low, _, high = words.partition("-")
    return low.isdecimal() and int(low) <= count and (not high.isdecimal() or count <= int(high))


def _card(bench: OpenBenchmark, case: Case, answer: HumanAnswer | None) -> CaseCard:
    card = CaseCard(
        code=bench.code(case.id),
        history=case.question.history,
        thumbs=tuple(bench.id_of(image) for image in case.question.images[:4]),
        images=len(case.question.images),
        is_revealed=answer is not None,
    )
    if answer is None:
        return card
    result = "" if answer.letter is None else "right" if answer.letter == case.reference.answer else "wrong"
    return msgspec.structs.replace(
        card,
        number=case.id,
        diagnosis=case.question.options.get(case.reference.answer, case.reference.answer_text),
        modalities=", ".join(case.modalities),
        result=result,
    )


def make_reading_page(
    bench: OpenBenchmark,
    case: Case,
    mine: Mapping[int, HumanAnswer],
    query: ExploreQuery,
    others: list[HumanAnswer],
    models: ModelLetters,
) -> ReadingPage:
    """The case as its reader may see it now."""
    answer = mine.get(case.id)
    codes = [bench.code(one.id) for one in choose_cases(bench, mine, query)]
    here = codes.index(bench.code(case.id)) if bench.code(case.id) in codes else -1
    images = tuple(_blind_image(bench, image, place + 1) for place, image in enumerate(case.question.images))
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
        reveal=None if answer is None else _reveal(case, answer, others, models),
    )


def _blind_image(bench: OpenBenchmark, image: Image, number: int) -> BlindImage:
    problem, size = "", (0, 0)
    try:
        size = image_size(image)
    except MedThinkError as error:
        problem = error.problem
    return BlindImage(id=bench.id_of(image), number=number, width=size[0], height=size[1], problem=problem)


def _label(image: BlindImage, case: Case) -> BlindImage:
    known = case.reference.images
    if image.number > len(known):
        return image
    label = known[image.number - 1]
    return msgspec.structs.replace(image, group=label.modality, caption=label.caption)


def _reveal(case: Case, answer: HumanAnswer, others: list[HumanAnswer], models: ModelLetters) -> Reveal:
    reference = case.reference
    said = {name: letters[case.id] for name, letters in models.items() if case.id in letters}
    by_models, by_readers = Counter(said.values()), Counter(one.letter for one in others if one.case == case.id)
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
    return Reveal(
        number=case.id,
        answer=reference.answer,
        mine=answer.letter or "",
        confidence=CONFIDENCES.get(answer.confidence or 0, ""),
        took=tell_time(answer.seconds),
        options=options,
        models=len(said),
        findings=reference.findings,
        discussion=reference.discussion,
        facts=tuple(_facts(case)),
        wrong_models=tuple(sorted(name for name, letter in said.items() if letter != reference.answer)),
    )


def _facts(case: Case) -> Iterator[tuple[str, str]]:
    reference = case.reference
    yield "diagnosis", reference.answer_text
    codes = [code for code in (reference.icd_chapter, reference.icd_block, reference.icd_category) if code]
    if codes:
        yield "ICD-10", " › ".join(codes)
    if reference.is_longitudinal:
        yield "time points", f"{reference.timepoint_count}, {reference.interval_text or 'interval not stated'}"


def make_readers_page(bench: OpenBenchmark, name: str, answers: list[HumanAnswer], models: ModelLetters) -> ReadersPage:
    """People's accuracy with its interval, and the models' on the cases that people answered."""
    known = [one for one in answers if one.case in bench.cases]
    right = [one.letter == bench.answers[one.case] for one in known]
    cases = sorted({one.case for one in known})
    groups = {words: [one for one in known if one.confidence == key] for key, words in CONFIDENCES.items()}
    seconds = float(np.median([one.seconds for one in known])) if known else 0.0
    return ReadersPage(
        name=name,
        answers=len(known),
        readers=len({one.reader for one in known}),
        cases=len(cases),
        accuracy=place_rate(_rate(right, [one.case for one in known])) if known else None,
        median_seconds=tell_time(seconds),
        by_confidence=tuple(
            (words, len(group), _words(_rate([one.letter == bench.answers[one.case] for one in group], None)))
            for words, group in groups.items()
            if group
        ),
        models=tuple(_models_on(bench, cases, models)) if known else (),
    )


def _rate(right: list[bool], cases: list[int] | None) -> Measured:
    return rate_interval(right, clusters=cases)


def _words(rate: Measured) -> str:
    placed = place_rate(rate)
    return placed.words if placed else "–"


def _models_on(bench: OpenBenchmark, cases: list[int], models: ModelLetters) -> Iterator[tuple[str, Interval]]:
    for name, letters in models.items():
        shared = [case for case in cases if case in letters]
        rate = place_rate(_rate([letters[case] == bench.answers[case] for case in shared], None)) if shared else None
        if rate is not None:
            yield name, rate
