"""The case explorer's routes: cases are blind until their reader commits, and the server alone decides that."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.exceptions import NotFoundException, PermissionDeniedException
from litestar.params import Body, FromPath, SkipValidation
from litestar.response import Redirect, Response

from medthink.cases.case import Case
from medthink.web.access import Asked, caller_of, needs
from medthink.web.application import html
from medthink.web.feature import Feature
from medthink.web.human_answers import HumanAnswers
from medthink.web.library import OpenBenchmark
from medthink.web.pages.explore import (
    CONFIDENCES,
    ExploreQuery,
    ModelLetters,
    make_explore_page,
    make_readers_page,
    make_reading_page,
)
from medthink.web.pages.query import read_query
from medthink.web.reader_codes import account_reader, reader_of, remember_reader
from medthink.web.rendering import Site, render


class Explorer:
    """The cases of one benchmark, and what its readers have committed to."""

    def __init__(
        self,
        bench: OpenBenchmark,
        answers: HumanAnswers,
        site: Site,
        models: Callable[[], ModelLetters] = dict,
        is_awaited: Callable[[str, int], bool] | None = None,
    ) -> None:
        self._is_awaited = is_awaited
        self.bench = bench
        self._answers = answers
        self._site = site
        self._models = models
        self._name = bench.benchmark.path.resolve().name
        self._key = bench.text_fingerprint

    def list_cases(self, reader: str, given: Mapping[str, str]) -> str:
        """All cases."""
        mine = self._answers.of_reader(reader, self._key)
        page = make_explore_page(self.bench, self._name, mine, read_query(ExploreQuery, given))
        return render("explore.html", page, self._site, here="cases")

    def read_case(self, reader: str, code: str, given: Mapping[str, str]) -> str:
        """One case, as this reader may see it."""
        case = self.find(code)
        mine = self._answers.of_reader(reader, self._key)
        revealed = case.id in mine
        if not revealed:
            self._answers.open_case(reader, self._key, case.id)
        # What others said is not even read before the reveal.
        others = self._answers.of_all(self._key) if revealed else []
        models = self._models() if revealed else {}
        query = read_query(ExploreQuery, given)
        page = make_reading_page(self.bench, case, mine, query, others, models)
        return render("reading.html", page, self._site, here="cases")

    def commit(self, reader: str, code: str, letter: str, confidence: str) -> None:
        """Keep an answer; a letter that is none of the options reveals without an answer."""
        case = self.find(code)
        chosen = letter if letter in case.question.options else None
        sure = int(confidence) if confidence.isdecimal() and int(confidence) in CONFIDENCES else None
        self._answers.commit(reader, self._key, case.id, chosen, sure if chosen else None)

    def refuse_awaited(self, request: Asked, code: str) -> None:
        """Refuse a case that the caller has still to read blind in a study."""
        account = caller_of(request).account
        if account is not None and self._is_awaited and self._is_awaited(account.name, self.find(code).id):
            raise PermissionDeniedException(detail="You read this case in a study. Read it there first.")

    def codes(self) -> list[str]:
        """The codes of all cases, in their order."""
        return sorted(self.bench.code(number) for number in self.bench.cases)

    def revealed_reference(self, request: Asked, case: Case) -> dict[str, Any] | None:
        """What is withheld of a case, once the account that asks has committed to an answer."""
        account = caller_of(request).account
        if account is None or (self._is_awaited and self._is_awaited(account.name, case.id)):
            return None
        if case.id not in self._answers.of_reader(account_reader(account), self._key):
            return None
        plain: dict[str, Any] = msgspec.to_builtins(case.reference)
        return plain

    def readers(self) -> str:
        """The human baseline."""
        page = make_readers_page(self.bench, self._name, self._answers.of_all(self._key), self._models())
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
    return remember_reader(html(explorer.list_cases(reader, request.query_params)), request, reader)


@get("/cases/{code:str}", guards=[needs("visitor")], sync_to_thread=True)
def read_case(code: FromPath[str], request: Asked, explorer: GivenExplorer) -> Response[str]:
    """One case."""
    explorer.refuse_awaited(request, code)
    reader = reader_of(request)
    return remember_reader(html(explorer.read_case(reader, code, request.query_params)), request, reader)


@post("/cases/{code:str}/answer", guards=[needs("visitor")], sync_to_thread=True)
def commit_answer(
    code: FromPath[str],
    request: Asked,
    explorer: GivenExplorer,
    data: Annotated[Committed, Body(media_type=RequestEncodingType.URL_ENCODED)],
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
