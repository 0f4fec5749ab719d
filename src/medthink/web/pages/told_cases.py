"""Cases with models' answers, shown only for cases that the reader has revealed."""

from collections.abc import Iterator, Sequence

import msgspec

from medthink.board.ranking import BoardRow
from medthink.cases.case import Case
from medthink.web.pages.marks import STATE_WORDS
from medthink.web.revealed import RevealedCases


class ToldAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What one model answered."""

    letter: str
    text: str
    result: str


class ToldCase(msgspec.Struct, frozen=True, kw_only=True):
    """A revealed case, the reference, and the answers of one model or two."""

    code: str
    number: int
    images: tuple[str, ...]
    n_images: int
    modalities: str
    gold: str
    diagnosis: str
    answers: tuple[ToldAnswer, ...]
    rights: tuple[bool, ...]
    models_right: str
    share: float


def tell_cases(
    rows: Sequence[BoardRow], shares: Sequence[float], models: int, revealed: RevealedCases
) -> Iterator[ToldCase]:
    """The revealed cases of these rows, on the same cases; `shares` is the share of models right on each."""
    places = {number: place for place, number in enumerate(rows[0].result.cases)}
    for case in revealed.cases():
        place = places.get(case.id)
        if place is not None:
            yield ToldCase(
                code=revealed.code(case),
                number=case.id,
                images=revealed.image_ids(case),
                n_images=len(case.question.images),
                modalities=", ".join(case.modalities),
                gold=case.reference.answer,
                diagnosis=case.question.options.get(case.reference.answer, case.reference.answer_text),
                answers=tuple(_answer(row, place, case) for row in rows),
                rights=tuple(row.result.rights[place] >= 0.5 for row in rows),
                models_right=f"{round(shares[place] * models)} of {models}",
                share=shares[place],
            )


def _answer(row: BoardRow, place: int, case: Case) -> ToldAnswer:
    letter, state = row.result.answers[place], row.result.states[place]
    if letter is None:
        return ToldAnswer(letter="", text=STATE_WORDS.get(state, state), result="")
    result = "right" if letter == case.reference.answer else "wrong"
    return ToldAnswer(letter=letter, text=case.question.options.get(letter, ""), result=result)
