"""`medthink serve`: cases stay blind until their reader commits, and the server alone decides that."""

import dataclasses
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from litestar.testing import TestClient

from made_runs import make_run
from medthink.board.checking import LoadedBenchmark
from medthink.board.publish import DirectSubmission, add_to_board
from medthink.judge.scores import clustered_rate
from medthink.scoring.scores import rate_text
from medthink.store import tables
from medthink.store.engine import Store, store_url
from medthink.web.app.images import Renditions
from medthink.web.app.security import loopback_hosts
from medthink.web.app.server import ServeSettings
from medthink.web.board.site import board_answers
from medthink.web.cases.answers import HumanAnswer, Reveals
from medthink.web.cases.routes import make_readers_page
from medthink.web.serve import open_app, serve_application
from medthink.web.serve_app import ServeApp
from small_benchmark import make_row, write_benchmark

PORT = 7350
OWN = f"http://127.0.0.1:{PORT}"
CASES = 6
WORDS = "WITHHELD until the reveal: words of"
# Filters over what is withheld, and the choice of a model: what they find or show is for those who have revealed it.
ASKING = (
    "modality=CT", "chapter=Chapter+II+-+Neoplasms", "course=single", "course=longitudinal", "difficulty=easy",
    "difficulty=middle", "difficulty=hard", "wrong=me", "wrong=1", "wrong=2", "model=1",
)  # fmt: skip


class Serving(NamedTuple):
    """A house and how to reach it."""

    house: ServeApp
    root: Path
    app: Any

    def client(self, **options: Any) -> TestClient[Any]:
        return TestClient(self.app, base_url=OWN, **options)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    root = tmp_path_factory.mktemp("serve")
    bench = write_benchmark(root / "bench", cases=CASES)
    store = Store(store_url(root / "board.sqlite"))
    held = LoadedBenchmark.open(bench, "test")
    for name, skill in (("good", 0.9), ("poor", 0.2)):
        run = make_run(root / name, bench, model=f"server/{name}", skill=skill, task="twi", words=f"{WORDS} {name}")
        addition = DirectSubmission(source=run, team=f"<b>{name}</b>", model="", allows_download=name == "good")
        add_to_board(store, held, addition, actor="test")
    house = open_app(store, bench, "test")
    app = serve_application(house, hosts=sorted(loopback_hosts(PORT)), renditions=Renditions(root / "cache"))
    yield Serving(house, root, app)
    store.close()


@pytest.fixture
def reader(serving: Serving) -> Iterator[TestClient[Any]]:
    with serving.client() as client:
        client.headers["user-agent"] = secrets.token_hex(8)
        yield client


def code(serving: Serving, number: int) -> str:
    return serving.house.bench.code(number)


def commit(client: TestClient[Any], at: str, **form: str) -> Any:
    return client.post(f"{at}/answer", data=form, headers={"origin": OWN}, follow_redirects=False)


def withheld(number: int) -> list[str]:
    """What must not be sent of a case: every withheld field of its row that is a text of its own."""
    row = make_row(number, 2)
    names = ("title", "IMAGING_FINDINGS", "discussion", "ICD Chapter", "ICD Block", "ICD Category")
    return [row[name] for name in names] + ["WITHHELD", WORDS, "is-gold", "reference</span>", 'data-group="CT"']


def test_before_the_reveal_no_page_gives_anything_that_is_withheld(serving, reader):
    at = f"/cases/{code(serving, 103)}"
    addresses = ["/cases", at, *(f"{at}?{asked}" for asked in ASKING), *(f"/cases?{asked}" for asked in ASKING)]
    addresses += [f"/api/v1{at}", "/api/v1/cases", "/models/1", "/models/2", "/compare?a=1&b=2"]
    for address in addresses:
        answer = reader.get(address)
        text = answer.text
        assert answer.status_code == 200
        assert [word for word in withheld(103) if word in text] == [], address
    assert "of the clinic" in reader.get(at).text and "Disease A103" in reader.get(at).text


def found(client: TestClient[Any], asked: str) -> int:
    return int(re.search(r"(\d+) of 6 cases", client.get(f"/cases?{asked}").text)[1])


def test_filters_over_withheld_fields_find_only_what_is_revealed(serving, reader):
    assert {found(reader, asked) for asked in ASKING if asked != "model=1"} == {0}
    # Its reference is B; both models answer each case, the good one nearly always right.
    commit(reader, f"/cases/{code(serving, 101)}", option="A")
    models = {str(one.number): one.letters[101] == "B" for one in board_answers(serving.house)}
    assert found(reader, "modality=CT") == found(reader, "course=single") == found(reader, "wrong=me") == 1
    assert found(reader, "course=longitudinal") == found(reader, "modality=MRI") == 0
    assert {number: found(reader, f"wrong={number}") == 0 for number in models} == models
    level = {0: "hard", 1: "middle", 2: "easy"}[sum(models.values())]
    assert [name for name in ("easy", "middle", "hard") if found(reader, f"difficulty={name}")] == [level]


def test_a_models_steps_stand_beside_the_reference_where_its_team_allows_that(serving, reader):
    at = f"/cases/{code(serving, 102)}"
    commit(reader, at, option="A")
    shown = reader.get(f"{at}?model=2").text
    assert f"{WORDS} good" in shown and f"{WORDS} poor" not in shown
    assert "Step 1 · image 2" in shown and "WITHHELD caption 102.2" in shown and "server/poor" in shown


def test_a_case_that_waits_in_a_study_is_blind_in_the_list_too(serving, reader, monkeypatch):
    commit(reader, f"/cases/{code(serving, 102)}", option="A")
    assert "Case 102" in reader.get("/cases").text
    monkeypatch.setattr(Reveals, "_awaited", lambda _, __: {102})
    assert "Case 102" not in reader.get("/cases").text and found(reader, "modality=CT") == 0


def test_committing_reveals_that_case_to_that_reader_alone(serving, reader):
    at = f"/cases/{code(serving, 104)}"
    answer = commit(reader, at, option="B", confidence="3")
    assert (answer.status_code, answer.headers["location"]) == (303, at)
    shown = reader.get(at).text
    assert "Case 104" in shown and "WITHHELD discussion 104" in shown and "You answered B, fairly sure" in shown
    assert "WITHHELD" not in reader.get(f"/cases/{code(serving, 105)}").text
    reader.cookies.clear()
    assert "WITHHELD" not in reader.get(at).text


def test_an_answer_cannot_be_changed(serving, reader):
    at = f"/cases/{code(serving, 102)}"
    commit(reader, at, option="C")
    commit(reader, at, option="D")
    assert "You answered C" in reader.get(at).text


def test_revealing_without_an_answer_is_no_answer(serving, reader):
    at = f"/cases/{code(serving, 100)}"
    before = len(serving.house.answers.of_all(serving.house.bench.text_fingerprint))
    commit(reader, at, option="skip", confidence="4")
    assert "Revealed without an answer" in reader.get(at).text
    assert len(serving.house.answers.of_all(serving.house.bench.text_fingerprint)) == before


def test_the_models_answers_stand_beside_the_reveal(serving, reader):
    at = f"/cases/{code(serving, 103)}"
    commit(reader, at, option="A")
    assert re.search(r"\d of 2 models", reader.get(at).text)


@pytest.mark.parametrize(
    "headers", [{}, {"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
def test_another_site_cannot_commit(serving, reader, headers):
    at = f"/cases/{code(serving, 105)}"
    answer = reader.post(f"{at}/answer", data={"option": "A"}, headers=headers, follow_redirects=False)
    assert answer.status_code == 403 and "WITHHELD" not in reader.get(at).text


def test_on_https_the_readers_cookie_is_secure(serving, tmp_path):
    settings = ServeSettings(public_url="https://board.example.org")
    house = dataclasses.replace(serving.house, settings=settings)
    app = serve_application(house, hosts=[], renditions=Renditions(tmp_path))
    with TestClient(app, base_url="https://board.example.org") as client:
        answer = client.get("/cases")
        assert "secure" in answer.headers["set-cookie"].lower()
        assert answer.headers["strict-transport-security"].startswith("max-age=")


def test_the_cookie_is_not_for_scripts_or_other_sites(reader):
    cookie = reader.get("/cases").headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie


@pytest.mark.parametrize("given", ["", "x" * 32 + "y", "'; DROP TABLE answers; --", "é" * 32])
def test_a_cookie_that_is_none_of_ours_is_replaced(serving, given):
    with serving.client() as client:
        answer = client.get("/cases", headers={"cookie": f"medthink_reader={given}".encode()})
        assert answer.status_code == 200 and "set-cookie" in answer.headers


def test_a_form_that_is_too_large_is_refused(serving, reader):
    answer = commit(reader, f"/cases/{code(serving, 105)}", option="A" * 200_000)
    assert answer.status_code == 413


def test_the_readers_page_has_the_human_baseline(serving, reader):
    commit(reader, f"/cases/{code(serving, 101)}", option="B", confidence="1")
    page = reader.get("/readers").text
    assert re.search(r"This reader|These \d+ readers", page) and "other readers may be better or worse" in page
    assert "server/<wbr>good" in page and "guessing" in page


def test_sixty_answers_without_cookies_are_one_reader_s(serving):
    at, bench = f"/cases/{code(serving, 104)}", serving.house.bench
    before = len(serving.house.answers.of_all(bench.text_fingerprint))
    with serving.client() as client:
        client.headers["user-agent"] = "one that forgets"
        for _ in range(60):
            client.cookies.clear()
            assert commit(client, at, option="B").status_code == 303
        found = serving.house.answers.of_all(bench.text_fingerprint)
        assert len(found) == before + 1
        mine = [one for one in found if one.case == 104 and one.seconds is None]
        page = client.get("/readers").text
    assert mine and "one for each browser, address, day and case" in page and "0.0 s" not in page
    with serving.house.store.read() as connection:
        stored = str(connection.execute(sa.select(tables.answers)).all())
    assert "one that forgets" not in stored and "testclient" not in stored


def test_an_answer_without_a_first_look_has_no_time(serving, reader):
    at = f"/cases/{code(serving, 100)}"
    commit(reader, at, option="A")
    assert "You answered A:" in reader.get(at).text
    with serving.client() as other:
        other.get("/cases")
        other.get(at)
        commit(other, at, option="A")
        assert re.search(r"You answered A, after \d", other.get(at).text)


def test_a_visit_without_cookies_stores_nothing(serving, reader):
    with serving.house.store.read() as connection:
        before = connection.execute(sa.select(sa.func.count()).select_from(tables.openings)).scalar()
    for _ in range(3):
        reader.cookies.clear()
        assert reader.get(f"/cases/{code(serving, 105)}").status_code == 200
    with serving.house.store.read() as connection:
        after = connection.execute(sa.select(sa.func.count()).select_from(tables.openings)).scalar()
    assert after == before


def test_readers_of_the_same_cases_do_not_narrow_the_interval_over_cases(serving):
    answers = [
        HumanAnswer(f"reader {k}", case, "A" if case % 2 else "B", 4, 10.0, f"source {k}")
        for k in range(20)
        for case in range(100, 106)
    ]
    bench = serving.house.bench
    page = make_readers_page(bench, "bench", answers, ())
    ((words, count, rate),) = page.by_confidence
    cases = rate_text(clustered_rate((one.case, one.letter == bench.answers[one.case]) for one in answers))
    assert (page.who, words, count, rate) == ("These 20 readers", "sure", 120, cases)
    assert page.accuracy.words in rate


def test_the_leaderboard_ranks_and_escapes(reader):
    page = reader.get("/").text
    assert page.index("server/good") < page.index("server/poor")
    assert "&lt;b&gt;good&lt;/b&gt;" in page and "<b>good" not in page
    assert "59 results" in page and "Our run" in page


def test_a_filter_never_changes_a_rank(reader):
    def rank(page: str) -> str:
        row = next(row for row in re.findall(r'<tr class="ranked.*?</tr>', page, re.DOTALL) if "server/poor" in row)
        return re.search(r'<td class="rank">(?:<svg.*?</svg>)?([^<]*)<', row)[1]

    assert rank(reader.get("/").text) == rank(reader.get("/?q=poor").text) == rank(reader.get("/?sort=model").text)
    assert "No matching models" in reader.get("/?q=nobody").text


def test_a_day_before_the_board_began_has_no_model(reader):
    assert "No submissions yet" in reader.get("/?as_of=2001-01-01").text


def test_a_model_has_its_page_and_others_do_not(reader):
    number = re.search(r"/models/(\d+)", reader.get("/").text)[1]
    assert "How it was made" in reader.get(f"/models/{number}").text
    assert reader.get("/models/999").status_code == 404
    assert reader.get("/cases/nothing").status_code == 404


def test_a_store_without_a_benchmark_says_so(tmp_path):
    store = Store(store_url(tmp_path / "board.sqlite"))
    app = serve_application(open_app(store, None, "test"), hosts=sorted(loopback_hosts(PORT)))
    with TestClient(app, base_url=OWN) as client:
        assert "none yet" in client.get("/").text
        assert client.get("/cases").status_code == 404
    store.close()
