"""A served board with people on it, and clients signed in as each of them."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from medthink.accounts.account import Account, NewAccount, add_account
from medthink.accounts.roles import GivenRole
from medthink.accounts.sessions import begin_session
from medthink.store.engine import Store, store_url
from medthink.web.app.access import COOKIE
from medthink.web.app.images import Renditions
from medthink.web.app.security import loopback_hosts
from medthink.web.app.server import ServeSettings, make_server, open_port
from medthink.web.serve import open_app, serve_application

PORT = 7350
OWN = f"http://127.0.0.1:{PORT}"
FROM_HERE = {"origin": OWN}
PASSWORD = "tarn lantern cobalt"


class Board:
    """A store that is served, without a port."""

    def __init__(
        self,
        root: Path,
        data: Path | None = None,
        settings: ServeSettings | None = None,
        *,
        runs: Sequence[Path] = (),
        review: Path | None = None,
    ) -> None:
        self.store = Store(store_url(root / "board.sqlite"))
        self.served = open_app(self.store, data, "test", settings, runs=runs, review=review)
        self._renditions = Renditions(root / "cache")
        self.app = serve_application(self.served, hosts=sorted(loopback_hosts(PORT)), renditions=self._renditions)

    def add(self, name: str, *roles: GivenRole, team: str = "", password: str | None = None) -> Account:
        """An account; without a password, which takes a while to hash, unless one is given."""
        return add_account(self.store, NewAccount(name=name, roles=roles, team=team, password=password), actor="test")

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Answer at a port on the loopback; yields the address, without the last slash."""
        with open_port(None) as opened:
            port = opened.getsockname()[1]
            app = serve_application(self.served, hosts=sorted(loopback_hosts(port)), renditions=self._renditions)
            server = make_server(app)
            thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[opened])))
            thread.start()
            yield f"http://127.0.0.1:{port}"
            server.should_exit = True
            thread.join(timeout=120)

    @contextmanager
    def client(self, account: Account | None = None) -> Iterator[TestClient[Any]]:
        """A browser: a visitor's, or one where this account is signed in; any number of them may be open."""
        # Not entered, because each would run the application's beginning and end.
        client: TestClient[Any] = TestClient(self.app, base_url=OWN)
        if account is not None:
            client.cookies.set(COOKIE, begin_session(self.store, account))
        yield client


def send(client: Any, address: str, **form: Any) -> Any:
    """Send a form as our own pages do; a redirect is not followed."""
    return client.post(address, data=form, headers=FROM_HERE, follow_redirects=False)
