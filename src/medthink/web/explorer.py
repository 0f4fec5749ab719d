"""The case explorer's routes: cases are blind until their reader commits, which only the server decides."""

from typing import Any

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException, PermissionDeniedException
from litestar.params import FromPath, SkipValidation, URLEncodedBody
from litestar.response import Redirect, Response

from medthink.cases.case import Case
from medthink.web.access import Asked, caller_of, needs
from medthink.web.application import html
from medthink.web.board_site import BoardSite
from medthink.web.feature import Feature
from medthink.web.human_answers import HumanAnswers
from medthink.web.pages.explore import ExploreQuery, make_explore_page
from medthink.web.pages.query import read_query
from medthink.web.pages.readers import make_readers_page
from medthink.web.pages.reading import CONFIDENCES, ToldOfCase, make_reading_page
from medthink.web.reader_codes import reader_of, remember_reader
from medthink.web.rendering import Site, render
from medthink.web.revealed import Reveals


class Explorer:
    """The cases of one benchmark, what its readers have committed to, and what the models of a board said."""

    def __init__(self, reveals: Reveals, answers: HumanAnswers, site: Site, board: BoardSite) -> None:
        self.bench = reveals.bench
        self._reveals = reveals
        self._answers = answers
        self._site = site
        self._board = board
        self._name = self.bench.benchmark.path.resolve().name
        self._key = self.bench.text_fingerprint

    def list_cases(self, request: Asked) -> str:
        """All cases."""
        query = read_query(ExploreQuery, request.query_params)
        mine = self._reveals.answers(request)
        page = make_explore_page(self.bench, self._name, mine, query, self._board.answers() if mine else ())
        return render("explore.html", page, self._site, here="cases")

    def read_case(self, request: Asked, reader: str, code: str) -> str:
        """One case, as this reader may see it."""
        case, query = self.find(code), read_query(ExploreQuery, request.query_params)
        mine = self._reveals.answers(request)
        if case.id not in mine:
            self._answers.open_case(reader, self._key, case.id)
        # Others' answers are not even loaded before the reveal.
        told = self._told(case, query) if case.id in mine else ToldOfCase()
        page = make_reading_page(self.bench, case, mine, query, told)
        return render("reading.html", page, self._site, here="cases")

    def _told(self, case: Case, query: ExploreQuery) -> ToldOfCase:
        models = self._board.answers()
        giving = [one.number for one in models if one.gives_words and case.id in one.letters]
        wanted = int(query.model) if query.model.isdecimal() else None
        shown = wanted if wanted in giving else next(iter(giving), None)
        words = self._board.words(shown).get(case.id) if shown is not None else None
        return ToldOfCase(others=self._answers.of_all(self._key), models=models, shown=shown, words=words)

    def commit(self, reader: str, code: str, letter: str, confidence: str) -> None:
        """Store an answer; a letter that is not an option reveals without an answer."""
        case = self.find(code)
        chosen = letter if letter in case.question.options else None
        sure = int(confidence) if confidence.isdecimal() and int(confidence) in CONFIDENCES else None
        self._answers.commit(reader, self._key, case.id, chosen, sure if chosen else None)

    def refuse_awaited(self, request: Asked, code: str) -> None:
        """Refuse a case that the caller still has to read blind in a study."""
        if self._reveals.awaits(request, self.find(code).id):
            raise PermissionDeniedException(detail="This case is part of a study you read in. Read it there first.")

    def codes(self) -> list[str]:
        """The codes of all cases, in their order."""
        return sorted(self.bench.code(number) for number in self.bench.cases)

    def revealed_reference(self, request: Asked, case: Case) -> dict[str, Any] | None:
        """The withheld part of a case, once the caller has committed to an answer."""
        if caller_of(request).account is None or case.id not in self._reveals.answers(request):
            return None
        plain: dict[str, Any] = msgspec.to_builtins(case.reference)
        return plain

    def readers(self) -> str:
        """The human baseline."""
        page = make_readers_page(self.bench, self._name, self._answers.of_all(self._key), self._board.answers())
        return render("readers.html", page, self._site, here="readers")

    def find(self, code: str) -> Case:
        """The case with this code."""
        found = self.bench.case_by_code(code)
        if found is None:
            raise NotFoundException(detail="There is no such case.")
        return found


GivenExplorer = NamedDependency[SkipValidation[Explorer]]


class Committed(msgspec.Struct):
    """The form by which a reader commits."""

    option: str = ""
    confidence: str = ""


@get("/cases", guards=[needs("visitor")], sync_to_thread=True)
def show_cases(request: Asked, explorer: GivenExplorer) -> Response[str]:
    """All cases."""
    reader = reader_of(request)
    return remember_reader(html(explorer.list_cases(request)), request, reader)


@get("/cases/{code:str}", guards=[needs("visitor")], sync_to_thread=True)
def read_case(code: FromPath[str], request: Asked, explorer: GivenExplorer) -> Response[str]:
    """One case."""
    explorer.refuse_awaited(request, code)
    reader = reader_of(request)
    return remember_reader(html(explorer.read_case(request, reader, code)), request, reader)


@post("/cases/{code:str}/answer", guards=[needs("visitor")], sync_to_thread=True)
def commit_answer(
    code: FromPath[str],
    request: Asked,
    explorer: GivenExplorer,
    data: URLEncodedBody[Committed],
) -> Redirect:
    """Commit to an answer, and reveal."""
    explorer.refuse_awaited(request, code)
    reader = reader_of(request)
    explorer.commit(reader, code, data.option, data.confidence)
    query = read_query(ExploreQuery, request.query_params).encode()
    return remember_reader(Redirect(f"/cases/{code}{query}", status_code=303), request, reader)


@get("/readers", guards=[needs("visitor")], sync_to_thread=True)
def show_readers(explorer: GivenExplorer) -> Response[str]:
    """The human baseline."""
    return html(explorer.readers())


def explorer_feature(explorer: Explorer) -> Feature:
    """The cases to read, and the human baseline."""
    return Feature(routes=[show_cases, read_case, commit_answer, show_readers], shared={"explorer": explorer})
