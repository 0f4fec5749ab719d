"""`medthink view`: runs and their cases, read-only; each route makes a page's data and renders it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litestar import Request, get
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, SkipValidation
from litestar.response import Redirect, Response
from litestar.types import ASGIApp

from medthink.web.app.application import Feature, html, make_application
from medthink.web.app.benchmarks import BenchmarkCache
from medthink.web.app.images import Renditions, image_feature
from medthink.web.app.query import read_query
from medthink.web.app.rendering import Link, Site, render
from medthink.web.runs.accuracy import RunAccuracies, RunAccuracy
from medthink.web.runs.case_page import make_case_page
from medthink.web.runs.index import IndexedRun, RunIndex
from medthink.web.runs.run_page import CasesQuery, make_run_page
from medthink.web.runs.runs_page import RunsQuery, make_runs_page
from medthink.web.runs.verdicts import load_verdicts

if TYPE_CHECKING:
    from medthink.scoring.compare import Comparison

SITE = Site(links=(Link("", "Runs"), Link("versus", "Compare")))
_MOST_COMPARISONS = 64
Given = Mapping[str, str]


class Viewer:
    """The runs of some folders as pages of HTML."""

    def __init__(self, places: Sequence[Path], data: Path | None = None) -> None:
        self._places = tuple(map(str, places))
        self.library = BenchmarkCache(data)
        self.shelf = RunIndex(places, self.library)
        self._standings = RunAccuracies()
        self._compared = lru_cache(maxsize=_MOST_COMPARISONS)(self._compare)

    def close(self) -> None:
        """Stop background work."""
        self._standings.close()

    def runs(self, given: Given) -> str:
        """All runs."""
        runs = self.shelf.runs()
        page = make_runs_page(
            runs, self._standings.of_all(runs), self.shelf.broken(), read_query(RunsQuery, given), self._places
        )
        return render("runs.html", page, SITE)

    def run(self, slug: str, given: Given) -> str:
        """One run with its cases."""
        run = self._find(slug)
        page = make_run_page(
            run, self._stand(run), self._beside(run), load_verdicts(run.path), read_query(CasesQuery, given)
        )
        return render("run.html", page, SITE)

    def case(self, slug: str, number: int, sample: int, given: Given) -> str:
        """One case of a run."""
        run = self._find(slug)
        query = read_query(CasesQuery, given)
        page = make_case_page(run, number, sample, self._beside(run), load_verdicts(run.path), query)
        if page is None:
            raise NotFoundException(detail=f"{run.name} has no case {number}, or no sample {sample} of it.")
        return render("case.html", page, SITE)

    def versus(self, first: str, second: str, given: Given) -> str:
        """Two runs side by side."""
        from medthink.web.runs.compare_page import VersusQuery, make_versus_page

        a, b = self._find(first), self._find(second)
        runs = self.shelf.runs()
        page = make_versus_page(
            a,
            b,
            self._compared(a, b),
            {run.slug: self._stand(run) for run in (a, b)},
            runs,
            read_query(VersusQuery, given),
        )
        return render("versus.html", page, SITE, here="versus")

    def choose(self, given: Given) -> tuple[str, str] | str:
        """The names of the two chosen runs, or a page to choose them."""
        runs = self.shelf.runs()
        first, second = given.get("a", ""), given.get("b", "")
        if first and second:
            return self._find(first).slug, self._find(second).slug
        return render("choose.html", [(run.slug, run.name) for run in runs], SITE, here="versus")

    def _find(self, slug: str) -> IndexedRun:
        found = self.shelf.find(slug)
        if found is None:
            raise NotFoundException(detail="There is no such run in these folders.")
        return found

    def _stand(self, run: IndexedRun) -> RunAccuracy | None:
        return self._standings.of_all(self.shelf.runs()).get(run.slug)

    def _beside(self, run: IndexedRun) -> list[IndexedRun]:
        """The other runs on the same benchmark."""
        return [one for one in self.shelf.runs() if one.slug != run.slug and one.group[0] == run.group[0]]

    def _compare(self, a: IndexedRun, b: IndexedRun) -> "Comparison | str":
        from medthink.web.runs.compare_page import compare_two_runs

        return compare_two_runs(a, b)


Asked = Request[Any, Any, Any]
GivenViewer = NamedDependency[SkipValidation[Viewer]]


@get("/", sync_to_thread=True)
def show_runs(request: Asked, viewer: GivenViewer) -> Response[str]:
    """All runs."""
    return html(viewer.runs(request.query_params))


@get("/runs/{slug:str}", sync_to_thread=True)
def show_run(slug: FromPath[str], request: Asked, viewer: GivenViewer) -> Response[str]:
    """One run."""
    return html(viewer.run(slug, request.query_params))


@get("/runs/{slug:str}/cases/{number:int}", sync_to_thread=True)
def show_case(slug: FromPath[str], number: FromPath[int], request: Asked, viewer: GivenViewer) -> Response[str]:
    """One case, its first sample."""
    return html(viewer.case(slug, number, 0, request.query_params))


@get("/runs/{slug:str}/cases/{number:int}/{sample:int}", sync_to_thread=True)
def show_sample(
    slug: FromPath[str], number: FromPath[int], sample: FromPath[int], request: Asked, viewer: GivenViewer
) -> Response[str]:
    """One case, another sample."""
    return html(viewer.case(slug, number, sample, request.query_params))


@get("/versus", sync_to_thread=True)
def choose_two(request: Asked, viewer: GivenViewer) -> Response[str] | Redirect:
    """Redirect to the comparison of the two chosen runs."""
    chosen = viewer.choose(request.query_params)
    return html(chosen) if isinstance(chosen, str) else Redirect(f"/versus/{chosen[0]}/{chosen[1]}")


@get("/versus/{first:str}/{second:str}", sync_to_thread=True)
def show_versus(first: FromPath[str], second: FromPath[str], request: Asked, viewer: GivenViewer) -> Response[str]:
    """Two runs side by side."""
    return html(viewer.versus(first, second, request.query_params))


def view_application(viewer: Viewer, *, hosts: Sequence[str], renditions: Renditions | None = None) -> ASGIApp:
    """The application that shows these runs."""
    routes = [show_runs, show_run, show_case, show_sample, choose_two, show_versus]
    pages = Feature(routes=routes, shared={"viewer": viewer})
    return make_application([pages, image_feature(viewer.library, renditions)], SITE, hosts=hosts)
