"""Every role at every route, with every kind of object: generated from the routes that the application has."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from litestar.routes import HTTPRoute
from litestar.testing import TestClient

from medthink.accounts.account import set_disabled
from medthink.accounts.roles import ROLES, includes
from medthink.accounts.sessions import begin_session, list_tokens, make_token, revoke_token
from medthink.board.checking import LoadedBenchmark
from medthink.board.submissions import find_submission
from medthink.board.worker import process_next
from medthink.web.app.access import COOKIE, Needs
from medthink.web.app.server import ServeSettings
from people import FROM_HERE, OWN, Board
from small_benchmark import write_benchmark

CASES = 5
# Who may use what, by the beginning of its path, the longest first; what is not here is for everybody.
PROMISED = {
    "/account": "member",
    "/people": "maintainer",
    "/queue": "maintainer",
    "/submissions": "submitter",
    "/api/v1/submissions": "submitter",
    "/readings": "reader",
    "/room": "reader",
    "/studies": "coordinator",
}
MAINTAINERS_ALONE = ("approve", "decline", "annotate", "flag")
FOR_EVERYBODY = (
    "/models", "/cases", "/readers", "/images", "/static", "/sign-", "/welcome", "/invitation", "/submit", "/versus",
    "/compare", "/leaderboard", "/frontier", "/history", "/api/v1/leaderboard", "/api/v1/models", "/api/v1/cases",
    "/api/v1/openapi.json",
)  # fmt: skip


class Endpoint(NamedTuple):
    """A route: its method, its path, and what it declares."""

    method: str
    path: str
    role: str
    scope: str | None


class Scene(NamedTuple):
    """A board with people on it and one submission of the team North."""

    board: Board
    accounts: dict
    token: str
    code: str
    endpoints: list
    client: Any
    sessions: dict

    def session(self, account, one):
        """A session of the account; what is posted may end it, so that each has its own."""
        if one.method != "GET" or account.name not in self.sessions:
            self.sessions[account.name] = begin_session(self.board.store, account)
        return self.sessions[account.name]


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    root = tmp_path_factory.mktemp("matrix")
    bench = write_benchmark(root / "bench", cases=CASES)
    board = Board(root, bench, ServeSettings(uploads_per_day=1000))
    accounts = {role: board.add(role, role, team="East") for role in ROLES}
    accounts |= {"member": board.add("member"), "owner": board.add("owner", "submitter", team="North")}
    accounts |= {name: board.add(name, "maintainer") for name in ("closed", "program")}
    rows = [{"title": f"Case number {number}", "prediction": "A"} for number in range(100, 100 + CASES)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with board.client(accounts["owner"]) as client:
        sent = client.post("/api/v1/submissions?model=m", content=data, headers=FROM_HERE).json()
    held = LoadedBenchmark.open(bench)
    process_next(board.store, {board.served.benchmark.id: held})
    code = board.served.bench.code(102)
    # What is read comes first: a POST may reveal a case to its reader.
    endpoints = sorted(_endpoints(board), key=lambda one: one.method != "GET")
    with TestClient(board.app, base_url=OWN) as client:
        yield Scene(board, accounts, sent["token"], code, endpoints, client, {})
    board.store.close()


def _endpoints(board):
    app = board.app._app._app  # inside what guards and identifies
    for route in app.routes:
        if not isinstance(route, HTTPRoute):
            continue
        for method, (handler, _) in route.route_handler_map.items():
            if method in ("OPTIONS", "HEAD"):
                continue
            guards = [getattr(guard, "func", guard) for guard in handler.resolve_guards()]
            found = [guard for guard in guards if isinstance(guard, Needs)]
            assert len(found) == 1, route.path
            yield Endpoint(method, route.path, found[0].role, found[0].scope)


def _promised(path: str) -> str:
    if path.rsplit("/", 1)[1] in MAINTAINERS_ALONE:
        return "maintainer"
    starts = [start for start in PROMISED if path == start or path.startswith(f"{start}/")]
    if starts:
        return PROMISED[max(starts, key=len)]
    assert path == "/" or path.startswith(FOR_EVERYBODY), f"say in this test who may use {path}"
    return "submitter" if path == "/submit" else "visitor"


def test_every_route_asks_for_the_role_that_was_promised(scene):
    wrong = [
        (one.method, one.path, one.role, _promised(one.path))
        for one in scene.endpoints
        if one.role != _promised(one.path) and (one.method, one.path) != ("GET", "/submit")
    ]
    assert wrong == [] and len(scene.endpoints) > 50


def _address(scene, path):
    names = {"token": scene.token, "code": scene.code, "number": "99999", "name": "ui.js", "size": "112"}
    parts = [
        names.get(part[1:-1].split(":")[0], "nothing") if part.startswith("{") else part for part in path.split("/")
    ]
    return "/".join(parts)


def _ask(scene, one, *, account=None, bearer=None, is_real=False):
    """The answer to one who asks, each time in a session of its own; `is_real` names the submission that is there."""
    headers = {"authorization": f"Bearer {bearer}"} if bearer else dict(FROM_HERE)
    if account is not None:
        headers["cookie"] = f"{COOKIE}={scene.session(account, one)}"
    body = {"json": {}} if one.method == "POST" and one.path.startswith("/api/") else {}
    address = _address(scene, one.path)
    if not is_real and one.method == "POST":
        address = address.replace(scene.token, "nothing")
    answer = scene.client.request(one.method, address, headers=headers, follow_redirects=False, **body)
    scene.client.cookies.clear()
    return answer


def _is_let_in(answer) -> bool:
    is_sent_to_sign_in = answer.headers.get("location", "").startswith("/sign-in?next=")
    return answer.status_code not in (401, 403) and not is_sent_to_sign_in


@pytest.mark.parametrize("who", ["visitor", "member", *ROLES])
def test_a_role_is_let_in_where_it_may_and_nowhere_else(scene, who):
    account = scene.accounts.get(who)
    for one in scene.endpoints:
        answer = _ask(scene, one, account=account)
        may = one.role == "visitor" or (account is not None and includes(account.roles, one.role))
        assert _is_let_in(answer) is may, (one, answer.status_code)
        assert answer.status_code < 500, (one, answer.text)
        assert "WITHHELD" not in answer.text and "correct_answer" not in answer.text, one


def test_a_closed_account_is_a_visitor(scene):
    account = scene.accounts["closed"]
    with scene.board.client() as client:
        client.cookies.set(COOKIE, begin_session(scene.board.store, account))
        set_disabled(scene.board.store, account, is_disabled=True, actor="test")
        for one in scene.endpoints:
            if one.role != "visitor":
                address = _address(scene, one.path)
                answer = client.request(one.method, address, headers=FROM_HERE, follow_redirects=False)
                assert not _is_let_in(answer), one


@pytest.mark.parametrize("scope", ["read", "submit", "maintain"])
def test_a_program_is_let_in_by_its_scope_and_to_no_page(scene, scope):
    bearer = make_token(scene.board.store, scene.accounts["program"], "x", [scope], days=1)
    for one in scene.endpoints:
        answer = _ask(scene, one, bearer=bearer)
        may = one.scope is not None and (one.role == "visitor" or one.scope == scope)
        assert _is_let_in(answer) is may, (one, answer.status_code)
        assert answer.status_code < 500 and "WITHHELD" not in answer.text, one


def test_a_revoked_token_opens_nothing(scene):
    store, account = scene.board.store, scene.accounts["maintainer"]
    bearer = make_token(store, account, "x", ["read", "submit", "maintain"], days=1)
    revoke_token(store, account, list_tokens(store, account)[0].id)
    assert {_ask(scene, one, bearer=bearer).status_code for one in scene.endpoints} == {401}


def test_another_teams_submission_is_not_there(scene):
    """The object: North's submission, for North's owner, for East's submitter, and for a maintainer."""
    about_it = [one for one in scene.endpoints if "{token" in one.path]
    assert len(about_it) > 15
    for one in about_it:
        if one.role != "maintainer":
            assert _ask(scene, one, account=scene.accounts["submitter"], is_real=True).status_code == 404, one
        if one.method == "GET":
            assert _ask(scene, one, account=scene.accounts["owner"]).status_code == 200, one
            assert _ask(scene, one, account=scene.accounts["maintainer"]).status_code == 200, one
    assert find_submission(scene.board.store, scene.token).status == "scored"


def test_a_maintainer_s_program_sees_other_teams_work_with_the_scope_maintain_alone(scene):
    about_it = [one for one in scene.endpoints if "{token" in one.path and one.scope is not None]
    assert {one.scope for one in about_it} == {"read", "submit", "maintain"}
    account = scene.accounts["maintainer"]
    bearer = make_token(scene.board.store, account, "x", ["read", "submit"], days=1)
    for one in about_it:
        assert _ask(scene, one, bearer=bearer, is_real=True).status_code in (403, 404), one
    bearer = make_token(scene.board.store, account, "x", ["read", "maintain"], days=1)
    for one in about_it:
        if one.method == "GET":
            assert _ask(scene, one, bearer=bearer).status_code == 200, one
    assert find_submission(scene.board.store, scene.token).status == "scored"


GUIDE = Path(__file__).parents[3] / "docs/serve.md"
TABLE_HEAD = "| route | role | token scope |\n|---|---|---|\n"


def test_the_guide_has_the_table_of_routes_roles_and_scopes(scene):
    """Every cell is asked by the tests above; this one holds the guide to the same routes."""
    rows = sorted({(one.path, one.method, one.role, one.scope or "–") for one in scene.endpoints})
    lines = [f"| `{method} {path}` | {role} | {scope} |" for path, method, role, scope in rows]
    table = TABLE_HEAD + "\n".join(lines) + "\n"
    assert table in GUIDE.read_text(encoding="utf-8"), f"the table in docs/serve.md should be\n{table}"
