"""The case explorer's list: cases to read, with more data on those that the reader has revealed.

Case numbers, titles, modalities, ICD codes and models' answers are withheld: a case is identified by a code, and
filters over withheld data find only revealed cases.
"""

from collections.abc import Mapping, Sequence

import msgspec

from medthink.cases.case import Case
from medthink.core.numbers import as_percent
from medthink.web.app.benchmarks import LoadedSplit
from medthink.web.app.query import Query
from medthink.web.board.case_answers import ModelAnswers, right_share
from medthink.web.cases.answers import HumanAnswer

PER_PAGE = 60
# A case is easy where two thirds of the models or more are right, and hard where one third or fewer are.
EASY, HARD = 2 / 3, 1 / 3


class ExploreQuery(Query, frozen=True, kw_only=True):
    """The filters of cases: state and images apply to all cases, the others to revealed ones only.

    `wrong` is the number of a model, or `me`; `model` the one whose steps are shown next to the reference.
    """

    state: str = ""
    images: str = ""
    modality: str = ""
    chapter: str = ""
    course: str = ""
    difficulty: str = ""
    wrong: str = ""
    model: str = ""
    page: str = ""

    @property
    def asks_withheld(self) -> bool:
        """Whether it filters by something that is shown for revealed cases only."""
        return any((self.modality, self.chapter, self.course, self.difficulty, self.wrong))


class CaseCard(msgspec.Struct, frozen=True, kw_only=True):
    """A case in the list; withheld fields are empty until it is revealed."""

    code: str
    history: str
    thumbs: tuple[str, ...]
    images: int
    is_revealed: bool
    number: int | None = None
    diagnosis: str = ""
    modalities: str = ""
    result: str = ""
    models_right: str = ""


class ExplorePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the cases matching the query."""

    name: str
    query: ExploreQuery
    cards: tuple[CaseCard, ...]
    found: int
    total: int
    revealed: int
    modalities: tuple[str, ...]
    chapters: tuple[str, ...]
    models: tuple[tuple[str, str], ...]
    previous: str
    next: str


def make_explore_page(
    bench: LoadedSplit,
    name: str,
    mine: Mapping[int, HumanAnswer],
    query: ExploreQuery,
    models: Sequence[ModelAnswers],
) -> ExplorePage:
    """The filtered list; withheld fields are used only for revealed cases."""
    found = choose_cases(bench, mine, query, models)
    page = max(1, int(query.page)) if query.page.isdecimal() else 1
    start = (page - 1) * PER_PAGE
    known = [bench.cases[number] for number in mine if number in bench.cases]
    return ExplorePage(
        name=name,
        query=query,
        cards=tuple(_card(bench, case, mine.get(case.id), models) for case in found[start : start + PER_PAGE]),
        found=len(found),
        total=len(bench.cases),
        revealed=len(known),
        modalities=tuple(sorted({one for case in known for one in case.modalities})),
        chapters=tuple(sorted({case.reference.icd_chapter for case in known if case.reference.icd_chapter})),
        models=tuple((str(model.number), model.name) for model in models),
        previous=query.encode(page=str(page - 1)) if page > 1 else "",
        next=query.encode(page=str(page + 1)) if start + PER_PAGE < len(found) else "",
    )


def choose_cases(
    bench: LoadedSplit, mine: Mapping[int, HumanAnswer], query: ExploreQuery, models: Sequence[ModelAnswers]
) -> list[Case]:
    """The cases matching the query, in the order of their codes, because the file's order may reveal something."""
    ordered = sorted(bench.cases.values(), key=lambda case: bench.code(case.id))
    return [
        case
        for case in ordered
        if _fits(case, mine.get(case.id), query)
        and (not query.asks_withheld or _fits_withheld(case, mine.get(case.id), query, models))
    ]


def _fits(case: Case, answer: HumanAnswer | None, query: ExploreQuery) -> bool:
    """Whether the public data of the case matches."""
    question = case.question
    text = f"{question.history} {' '.join(question.options.values())}".casefold()
    if not all(word in text for word in query.words):
        return False
    if query.state and (query.state == "revealed") != (answer is not None):
        return False
    return not query.images or _in_bin(len(question.images), query.images)


def _fits_withheld(case: Case, answer: HumanAnswer | None, query: ExploreQuery, models: Sequence[ModelAnswers]) -> bool:
    """Whether the withheld data matches; only revealed cases can."""
    if answer is None:
        return False
    reference = case.reference
    return (
        query.modality in ("", *case.modalities)
        and query.chapter in ("", reference.icd_chapter)
        and query.course in ("", "longitudinal" if reference.is_longitudinal else "single")
        and query.difficulty in ("", _difficulty(right_share(models, case.id, reference.answer)))
        and (not query.wrong or _is_wrong(case, answer, query.wrong, models))
    )


def _difficulty(share: float | None) -> str | None:
    if share is None:
        return None
    return "easy" if share >= EASY else "hard" if share <= HARD else "middle"


def _is_wrong(case: Case, answer: HumanAnswer, who: str, models: Sequence[ModelAnswers]) -> bool:
    """Whether the reader, or the model with this number, chose a wrong option; no answer is no choice."""
    letters = [one.letters.get(case.id) for one in models if str(one.number) == who]
    return any(letter not in (None, case.reference.answer) for letter in ([answer.letter] if who == "me" else letters))


def _in_bin(count: int, words: str) -> bool:
    low, _, high = words.partition("-")
    return low.isdecimal() and int(low) <= count and (not high.isdecimal() or count <= int(high))


def _card(bench: LoadedSplit, case: Case, answer: HumanAnswer | None, models: Sequence[ModelAnswers]) -> CaseCard:
    card = CaseCard(
        code=bench.code(case.id),
        history=case.question.history,
        thumbs=tuple(bench.id_of(image) for image in case.question.images[:4]),
        images=len(case.question.images),
        is_revealed=answer is not None,
    )
    if answer is None:
        return card
    share = right_share(models, case.id, case.reference.answer)
    result = "" if answer.letter is None else "right" if answer.letter == case.reference.answer else "wrong"
    return msgspec.structs.replace(
        card,
        number=case.id,
        diagnosis=case.question.options.get(case.reference.answer, case.reference.answer_text),
        modalities=", ".join(case.modalities),
        result=result,
        models_right="" if share is None else f"{as_percent(share, 0)} of models right",
    )
