"""The review desk for curators: undecided cases, and a sample of automatic decisions, with their evidence.

The sheet of `medthink curate` is what is read and written: the desk and a spreadsheet are two ways to fill in the same
file, and the next build applies it.
"""

import threading
from pathlib import Path
from typing import Any

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import SkipValidation, URLEncodedBody
from litestar.response import Redirect, Response

from medthink.core.errors import MedThinkError
from medthink.curate.review import ReviewRow, Rulings, StageErrors, answer_row, read_rows
from medthink.web.access import Asked, account_of, needs
from medthink.web.application import html
from medthink.web.feature import Feature
from medthink.web.rendering import Site, render

_SHOWN = 50


class ReviewPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the waiting rows, and the results of the checks so far."""

    rows: tuple[ReviewRow, ...]
    waiting: int
    answered: int
    errors: tuple[StageErrors, ...]
    problem: str = ""


class RulingForm(msgspec.Struct):
    """A person's answer to one row."""

    stage: str = ""
    case: str = ""
    seen: str = ""
    ruling: str = ""
    value: str = ""
    is_right: str = ""
    note: str = ""


class ReviewDesk:
    """One sheet, open to everyone who may decide."""

    def __init__(self, sheet: Path, site: Site) -> None:
        self._sheet = sheet
        self._site = site
        self._lock = threading.Lock()

    def show(self, *, problem: str = "") -> str:
        """What waits for a person."""
        rows = read_rows(self._sheet)
        waiting = [row for row in rows if not row.is_answered]
        page = ReviewPage(
            rows=tuple(waiting[:_SHOWN]),
            waiting=len(waiting),
            answered=len(rows) - len(waiting),
            errors=tuple(Rulings.read(self._sheet).errors()),
            problem=problem,
        )
        return render("review.html", page, self._site, here="review")

    def answer(self, form: RulingForm, who: str) -> str:
        """Store an answer with its author; returns why it was not stored."""
        if form.ruling not in ("", "in", "out") or form.is_right not in ("", "yes", "no"):
            return "Choose one of the answers."
        note = f"{form.note.strip()} ({who})".strip()
        filled = {"ruling": form.ruling, "value": form.value, "is_right": form.is_right, "note": note}
        try:
            with self._lock:
                is_kept = answer_row(self._sheet, (form.stage, form.case, form.seen), filled)
        except MedThinkError as error:
            return str(error)
        return "" if is_kept else "This row no longer exists: the sheet was rebuilt."


GivenDesk = NamedDependency[SkipValidation[ReviewDesk]]


@get("/review", guards=[needs("coordinator")], sync_to_thread=True)
def show_review(review: GivenDesk) -> Response[str]:
    """What waits for a person."""
    return html(review.show())


@post("/review", guards=[needs("coordinator")], sync_to_thread=True)
def rule(request: Asked, review: GivenDesk, data: URLEncodedBody[RulingForm]) -> Response[Any]:
    """Decide an undecided case, or check an automatic decision."""
    problem = review.answer(data, account_of(request).name)
    return html(review.show(problem=problem), status=422) if problem else Redirect("/review", status_code=303)


def review_feature(review: ReviewDesk) -> Feature:
    """The review of a curation's decisions."""
    return Feature(routes=[show_review, rule], shared={"review": review})
