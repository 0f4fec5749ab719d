"""The review page for curators: undecided cases, and a sample of automatic decisions, with their evidence.

The page and a spreadsheet are two ways to answer the same questions: both write to the journal of `medthink curate`,
also while a build runs, and the next build applies it.
"""

import re
from typing import Any

import msgspec
from litestar import get, post
from litestar.params import URLEncodedBody
from litestar.response import Redirect, Response

from medthink.core.errors import MedThinkError
from medthink.curate.review import answer_row, read_rows
from medthink.curate.rulings import Answer, ReviewRow, Rulings, StageErrors, read_journal
from medthink.web.app.access import Asked, account_of, needs
from medthink.web.app.application import Feature, html
from medthink.web.app.rendering import render
from medthink.web.serve_app import GivenApp, ServeApp

_SHOWN = 50


class ReviewPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the waiting rows, and the results of the checks so far."""

    rows: tuple[ReviewRow, ...]
    waiting: int
    answered: int
    errors: tuple[StageErrors, ...]
    problem: str = ""


class RulingForm(msgspec.Struct):
    """A person's answer to one row; `entry` is the journal's line that the page showed."""

    question: str = ""
    entry: str = "0"
    ruling: str = ""
    value: str = ""
    is_right: str = ""
    note: str = ""


def _sheet_page(app: ServeApp, *, problem: str = "") -> str:
    """Show the rows that wait for review."""
    rows = read_rows(app.sheet.parent)
    waiting = [row for row in rows if not row.is_answered]
    page = ReviewPage(
        rows=tuple(waiting[:_SHOWN]),
        waiting=len(waiting),
        answered=len(rows) - len(waiting),
        errors=tuple(Rulings(read_journal(app.sheet.parent)).errors()),
        problem=problem,
    )
    return render("review.html", page, app.site, here="review")


def _keep_answer(app: ServeApp, form: RulingForm, who: str) -> str:
    """Store an answer with its author; returns why it was not stored."""
    if form.ruling not in ("", "in", "out") or form.is_right not in ("", "yes", "no"):
        return "Choose one of the answers."
    note = f"{form.note.strip()} ({who})".strip()
    answer = Answer(ruling=form.ruling, value=form.value.strip(), is_right=form.is_right, note=note)
    try:
        entry = int(form.entry) if re.fullmatch("[0-9]{1,9}", form.entry) else 0
        is_kept = answer_row(app.sheet.parent, form.question, answer, who=who, entry=entry)
    except MedThinkError as error:
        return str(error)
    return "" if is_kept else "This question is no longer asked: the cases were built again."


@get("/review", guards=[needs("coordinator")], sync_to_thread=True)
def show_review(app: GivenApp) -> Response[str]:
    """Show the rows that wait for review."""
    return html(_sheet_page(app))


@post("/review", guards=[needs("coordinator")], sync_to_thread=True)
def decide_row(request: Asked, app: GivenApp, data: URLEncodedBody[RulingForm]) -> Response[Any]:
    """Decide an undecided case, or check an automatic decision."""
    problem = _keep_answer(app, data, account_of(request).name)
    return html(_sheet_page(app, problem=problem), status=422) if problem else Redirect("/review", status_code=303)


review_feature = Feature(routes=[show_review, decide_row])
