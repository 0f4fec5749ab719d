"""The API: described whole, never a server's error, nothing that is withheld, nothing that is another team's."""

import contextlib
import csv
import json
import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from lazily import Lazily
from medthink.accounts.sessions import make_token
from medthink.board.checking import LoadedBenchmark
from medthink.board.worker import process_next
from medthink.web.app.server import ServeSettings
from people import Board, send
from small_benchmark import write_benchmark

schemathesis, checks = Lazily("schemathesis"), Lazily("schemathesis.specs.openapi.checks")
CASES = 6
EXAMPLES = int(os.environ.get("MEDTHINK_EXAMPLES", "8"))


def lines(letter="A"):
    rows = [{"title": f"Case number {number}", "prediction": letter} for number in range(100, 100 + CASES)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    root = tmp_path_factory.mktemp("api")
    bench = write_benchmark(root / "bench", cases=CASES)
    held = LoadedBenchmark.open(bench)
    board = Board(root, bench, ServeSettings(uploads_per_day=10_000, publications_per_week=10_000))
    board.work = lambda: process_next(board.store, {board.served.benchmark.id: held})
    board.boss = board.add("boss", "maintainer", team="North")
    board.ann = board.add("ann", "submitter", team="North")
    board.eve = board.add("eve", "submitter", team="East")
    board.bearer = lambda account, *scopes: {
        "authorization": f"Bearer {make_token(board.store, account, 'test', scopes, days=1)}"
    }
    yield board
    board.store.close()


@pytest.fixture
def client(board):
    with board.client() as client:
        yield client


def hand_in(client, bearer, data, model="made-7b"):
    return client.post(f"/api/v1/submissions?model={model}", content=data, headers=bearer)


def test_a_program_hands_in_follows_and_publishes(board, client):
    while board.work():  # what other tests have left in the queue
        pass
    bearer = board.bearer(board.ann, "read", "submit")
    sent = hand_in(client, bearer, lines("A"))
    assert sent.status_code == 202
    at = f"/api/v1/submissions/{sent.json()['token']}"
    assert (sent.json()["status"], sent.json()["position"]) == ("received", 1)
    assert hand_in(client, bearer, lines("A")).json()["token"] == sent.json()["token"]
    board.work()
    scored = client.get(at, headers=bearer).json()
    assert scored["status"] == "scored" and 0 < scored["accuracy"]["value"] < 1
    assert client.post(f"{at}/publish", headers=bearer).json()["status"] == "published"
    assert client.post(f"{at}/publish", headers=bearer).status_code == 422
    rows = client.get("/api/v1/leaderboard").json()["rows"]
    assert [row["model"] for row in rows] == ["made-7b"]
    number = rows[0]["number"]
    assert client.get(f"/api/v1/models/{number}").json()["accuracy"] == scored["accuracy"]["value"]
    table = list(csv.DictReader(client.get("/api/v1/leaderboard.csv").text.splitlines()))
    assert table[0]["model"] == "made-7b"
    assert client.get("/api/v1/leaderboard?as_of=2001-01-01").json()["rows"] == []
    assert client.post(f"{at}/withdraw", json={"words": ""}, headers=bearer).status_code == 422
    assert client.post(f"{at}/withdraw", json={"words": "an error"}, headers=bearer).json()["reason"] == "an error"


def test_problems_come_as_the_command_says_them(board, client):
    bearer = board.bearer(board.ann, "read", "submit")
    token = hand_in(client, bearer, lines("F")).json()["token"]
    board.work()
    found = client.get(f"/api/v1/submissions/{token}", headers=bearer).json()
    assert (found["status"], found["n_problems"], found["problems"][0]["line"]) == ("invalid", CASES, 1)
    told = client.get(f"/api/v1/submissions/{token}/problems", headers=bearer)
    assert told.headers["content-type"].startswith("text/plain") and told.text.count("\n") == CASES


def test_scopes_and_teams_limit_a_program(board, client):
    reading, sending = board.bearer(board.ann, "read"), board.bearer(board.ann, "submit")
    other, boss = board.bearer(board.eve, "read", "submit"), board.bearer(board.boss, "read", "maintain")
    assert hand_in(client, reading, lines("B")).status_code == 403
    token = hand_in(client, sending, lines("B")).json()["token"]
    at = f"/api/v1/submissions/{token}"
    assert client.get(at, headers=sending).status_code == 403
    for address in (at, "/api/v1/submissions/nothing"):
        assert client.get(address, headers=other).status_code == 404
    assert client.get("/api/v1/submissions", headers=other).json() == []
    assert client.post(f"{at}/flag", json={"words": "x"}, headers=sending).status_code == 403
    assert client.post(f"{at}/flag", json={"words": "odd"}, headers=boss).json()["flag"] == "odd"
    assert client.post(f"{at}/discard", headers=boss).status_code == 403, "the token lacks the scope"
    assert client.get("/api/v1/leaderboard", headers=sending).status_code == 200
    assert client.get("/account", headers=sending).status_code == 403


def test_a_case_gives_its_reference_to_one_who_committed_alone(board, client):
    bearer = board.bearer(board.ann, "read")
    cases = client.get("/api/v1/cases", headers=bearer).json()
    assert cases["total"] == CASES and "WITHHELD" not in json.dumps(cases)
    code = cases["cases"][0]["code"]
    assert client.get(cases["cases"][0]["images"][0]).status_code == 200
    with board.client(board.ann) as browser:
        send(browser, f"/cases/{code}/answer", option="A")
        assert browser.get(f"/api/v1/cases/{code}").json()["reference"]["discussion"].startswith("WITHHELD")
    assert client.get(f"/api/v1/cases/{code}", headers=bearer).json()["reference"] is not None
    assert client.get(f"/api/v1/cases/{code}").json()["reference"] is None
    assert client.get(f"/api/v1/cases/{code}", headers=board.bearer(board.eve, "read")).json()["reference"] is None


def test_errors_are_json_with_a_remedy(board, client):
    bearer = board.bearer(board.ann, "submit")
    assert client.get("/api/v1/nothing").json() == {"problem": "Not Found", "remedy": ""}
    assert "model" in client.post("/api/v1/submissions", content=b"x", headers=bearer).json()["problem"]
    assert "no file" in hand_in(client, bearer, b"").json()["problem"]
    assert client.get("/api/v1/openapi.json/x").status_code == 404
    assert client.get("/api/v1/models/" + "9" * 5000).status_code in (400, 404)


def test_the_description_names_every_route_and_no_page(client):
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert {path.split("/")[1] for path in paths} == {"api"} and len(paths) > 12


@pytest.fixture(scope="module")
def live(board):
    """A server of its own, with submissions in several states."""
    with board.client() as client:
        bearer = board.bearer(board.ann, "read", "submit")
        for letter in "CDE":
            hand_in(client, bearer, lines(letter))
            board.work()
        hand_in(client, bearer, lines("A").replace(b"A", b"B", 1))
    with board.serving() as address:
        yield address


@pytest.mark.parametrize("mode", ["positive", "negative"], ids=["as described", "not so"])
def test_whatever_is_asked_is_never_a_servers_error(board, live, mode):
    schema = schemathesis.openapi.from_url(f"{live}/api/v1/openapi.json")
    bearer = board.bearer(board.boss, "read", "submit", "maintain")
    with board.client() as client:
        tokens = [one["token"] for one in client.get("/api/v1/submissions", headers=bearer).json()]
    operations = [one.ok() for one in schema.get_all_operations()]
    asked = [
        (one.label, status)
        for one in operations
        for status in _ask(one, schemathesis.GenerationMode(mode), bearer, tokens)
    ]
    assert [one for one in asked if one[1] >= 500] == []
    assert len(operations) > 15 and {status for _, status in asked} > ({200, 404} if tokens else {200})


def _ask(operation, mode, bearer, tokens):
    """The statuses that some questions about one operation get, many of them about submissions that are there."""
    statuses = []

    @given(case=operation.as_strategy(mode), known=st.one_of(st.none(), st.sampled_from(tokens)))
    @settings(
        max_examples=EXAMPLES,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case, known):
        if known and "token" in (case.path_parameters or {}):
            case.path_parameters["token"] = known
        answer = case.call(headers=bearer)
        statuses.append(answer.status_code)
        if 200 <= answer.status_code < 300:
            both = (checks.response_schema_conformance, checks.content_type_conformance)
            case.validate_response(answer, checks=both)

    # A route without parameters cannot be asked otherwise than described.
    with contextlib.suppress(Unsatisfiable):
        ask()
    return statuses
