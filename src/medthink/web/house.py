"""`medthink serve`: the leaderboard of a store and the case explorer of a benchmark, in one application."""

from collections.abc import Sequence
from pathlib import Path

from litestar.types import ASGIApp

from medthink.board.store import BoardStore
from medthink.web.application import make_application
from medthink.web.board_site import BoardSite, board_routes
from medthink.web.explorer import Explorer, explorer_routes
from medthink.web.human_answers import HumanAnswers
from medthink.web.images import image_routes
from medthink.web.library import Library
from medthink.web.rendering import Link, Site
from medthink.web.renditions import Renditions

_BOARD = Link("", "Leaderboard")
_CASES = (Link("cases", "Cases"), Link("readers", "Readers"))


class House:
    """Everything that is served: a store, and a benchmark where one is given."""

    def __init__(self, store: BoardStore, answers: HumanAnswers, data: Path | None, split: str) -> None:
        self._site = Site(links=(_BOARD, *(_CASES if data else ())))
        self.board = BoardSite(store, self._site)
        self.library = Library()
        opened = self.library.open(data, split) if data else None
        self.explorer = Explorer(opened, answers, self._site, self.board.letters) if opened else None

    def application(self, *, hosts: Sequence[str], renditions: Renditions | None = None) -> ASGIApp:
        """The application that serves it."""
        shared: dict[str, object] = {"board": self.board}
        routes = [*board_routes]
        if self.explorer:
            routes += [*explorer_routes, *image_routes]
            shared |= {
                "explorer": self.explorer,
                "library": self.library,
                "renditions": renditions or Renditions(),
            }
        return make_application(routes, self._site, hosts=hosts, shared=shared)
