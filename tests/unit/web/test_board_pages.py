"""The board's pages: state in the address without script, ranks that no filter changes, cases blind until revealed."""

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from litestar.testing import TestClient

from medthink.accounts.account import NewAccount, add_account
from medthink.accounts.sessions import begin_session
from medthink.board.checking import LoadedBenchmark
from medthink.board.moderation import annotate, flag
from medthink.board.packing import pack_run
from medthink.board.publish import DirectSubmission, add_to_board
from medthink.board.queue import Upload, claim, receive, refuse
from medthink.board.submissions import find_submission, list_submissions
from medthink.runs.session import run as run_model
from medthink.store.engine import Store, store_url
from medthink.web.app.access import COOKIE
from medthink.web.app.images import Renditions
from medthink.web.app.security import loopback_hosts
from medthink.web.serve import open_app, serve_application
from medthink.workflow.condition import Condition
from small_benchmark import write_benchmark

OWN = "http://127.0.0.1:7350"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("pages")
    bench = write_benchmark(root / "bench", cases=12)
    store, held = Store(store_url(root / "board.sqlite")), LoadedBenchmark.open(bench)
    for name, condition in (("random", Condition()), ("longest", Condition()), ("random", Condition(image_share=0))):
        run = root / f"{name}-{condition.image_share}"
        run_model(bench, model=f"baseline/{name}", condition=condition, out=run)
        add_to_board(store, held, DirectSubmission(source=run, team="North"), actor="test", name="demo")
    pack_run(root / "random-1.0", root / "packed.jsonl")
    rows = [json.loads(line) for line in (root / "packed.jsonl").read_text().splitlines()]
    for place, row in enumerate(rows):
        row |= {"correct_answer": "A", "discussion": "WITHHELD canary", "prediction_rationale": f"because {place}"}
        del row["trace"]
    (root / "bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    addition = DirectSubmission(source=root / "bare.jsonl", team="South", model="plain file", allows_download=True)
    add_to_board(store, held, addition, actor="test")
    house = open_app(store, bench, "test")
    yield house, serve_application(house, hosts=sorted(loopback_hosts(7350)), renditions=Renditions(root / "cache"))
    store.close()


@pytest.fixture
def visitor(scene: Any) -> Iterator[TestClient[Any]]:
    with TestClient(scene[1], base_url=OWN) as client:
        yield client


def ranks(page: str) -> dict[str, str]:
    rows = re.findall(r'<tr class="ranked.*?</tr>', page, re.DOTALL)
    return {
        re.search(r"models/(\d+)", row)[1]: re.search(r'class="rank">(?:<svg.*?</svg>)?([^<]*)<', row)[1]
        for row in rows
    }


def test_rows_without_traces_are_ranked_but_shown_on_request(visitor):
    first, every = ranks(visitor.get("/").text), ranks(visitor.get("/?proof=1").text)
    assert len(first) == 2 and len(every) == 3 and first.items() <= every.items()
    assert "1 with less provenance is not shown" in visitor.get("/").text


def test_pages_are_kept_until_the_board_changes_not_while_a_file_waits(scene):
    live, benchmark = scene[0].live, scene[0].live.benchmark()
    before = live.version()
    upload = Upload(benchmark_id=benchmark.id, team="East", model="bad", data=b"{}\n")
    token = receive(live.store, upload).token
    refuse(live.store, claim(live.store), ())
    assert live.version() == before and find_submission(live.store, token).status == "invalid"
    annotate(live.store, next(one.token for one in list_submissions(live.store)), actor="x", words="Seen.")
    assert live.version() != before


def test_a_change_is_on_the_front_page_at_once(scene, visitor):
    live = scene[0].live
    shown = visitor.get("/").content
    assert visitor.get("/").content == shown
    before, token = live.made(), next(one.token for one in list_submissions(live.store))
    flag(live.store, token, actor="x", why="Doubtful for a test.")
    assert live.made() is not before and visitor.get("/").content != shown
    flag(live.store, token, actor="x", why="")
    assert visitor.get("/").content == shown


def test_who_asks_at_the_same_time_waits_for_one_and_a_failure_is_not_kept(scene):
    live, begin, made = scene[0].live, threading.Barrier(4), []

    def ask(_: int) -> object:
        begin.wait()
        return live.once("test", "key", lambda: made.append(1) or object(), most=1)

    with pytest.raises(ZeroDivisionError):
        live.once("test", "key", lambda: 1 // 0, most=1)
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(ask, range(4)))) == len(made) == 1
    live.once("test", "other", list, most=1)
    assert live.once("test", "key", lambda: "made again", most=1) == "made again"


def test_a_kept_page_has_the_name_of_its_own_reader(scene):
    store = scene[0].live.store
    names = ("Ada of North", "Bo of South")
    accounts = [
        add_account(store, NewAccount(name=f"p{at}", shown_name=name, roles=()), actor="x")
        for at, name in enumerate(names)
    ]
    for account, name in [*zip(accounts, names, strict=True)] * 2:
        with TestClient(scene[1], base_url=OWN) as client:
            client.cookies.set(COOKIE, begin_session(store, account))
            page = client.get("/").text
            assert [one for one in names if one in page] == [name]
    with TestClient(scene[1], base_url=OWN) as client:
        assert not any(name in client.get("/").text for name in names)


@pytest.mark.parametrize("query", ["q=longest", "sort=accuracy&down=1", "sort=model", "proof=4", "sort=rank&down=1"])
def test_no_filter_and_no_sort_changes_a_rank(visitor, query):
    assert ranks(visitor.get(f"/?{query}").text).items() <= ranks(visitor.get("/?proof=1").text).items()


def test_the_address_chooses_the_columns_and_says_how_they_are_sorted(visitor):
    page = visitor.get("/?col=-&col=team&col=family&sort=team&down=1").text
    assert "By the team" in page and "Of the family" in page and "Gain over strongest rival" not in page
    assert 'aria-sort="descending"' in page
    assert "By the team" not in visitor.get("/?col=-").text and "Gain over strongest rival" in visitor.get("/").text


def test_rows_that_saw_a_part_have_a_ranking_of_their_own(visitor):
    page = visitor.get("/?ranking=partial").text
    assert len(ranks(page)) == 1 and "a separate ranking" in page


@pytest.mark.parametrize("address", ["/?page=99", "/?sort=nothing", "/?as_of=no-date", "/?proof=x", "/?col=nothing"])
def test_an_address_that_makes_no_sense_still_shows_the_board(visitor, address):
    assert len(ranks(visitor.get(address).text)) == 2


def test_every_form_of_the_data_is_served(visitor):
    for form, start in (("csv", b"number,"), ("json", b"{"), ("parquet", b"PAR1")):
        assert visitor.get(f"/leaderboard.{form}").content.startswith(start)


def test_the_download_holds_what_the_model_wrote_and_no_reference(visitor):
    numbers = list(ranks(visitor.get("/?proof=1&q=plain").text))
    answer = visitor.get(f"/models/{numbers[0]}/predictions.jsonl")
    assert "because 3" in answer.text and "WITHHELD" not in answer.text and "correct_answer" not in answer.text
    others = [number for number in ranks(visitor.get("/").text) if number != numbers[0]]
    assert visitor.get(f"/models/{others[0]}/predictions.jsonl").status_code == 404


def test_a_model_and_a_comparison_tell_only_of_revealed_cases(scene, visitor):
    a, b = ranks(visitor.get("/").text)
    addresses = [f"/models/{a}", f"/compare?a={a}&b={b}", f"/compare?a={a}&b={b}&only=a"]
    for address in addresses:
        page = visitor.get(address).text
        assert "WITHHELD" not in page and "Case 1" not in page and "Disease" not in page and "/images/" not in page
    code = scene[0].bench.code(103)
    visitor.post(f"/cases/{code}/answer", data={"option": "A"}, headers={"origin": OWN})
    assert "Case 103" in visitor.get(f"/models/{a}").text
    assert "Case 104" not in visitor.get(f"/models/{a}").text


def test_a_model_can_be_made_again_by_its_command(visitor):
    number = next(iter(ranks(visitor.get("/").text)))
    assert "medthink run DATA --model baseline/" in visitor.get(f"/models/{number}").text


def test_one_model_is_not_two(visitor):
    number = next(iter(ranks(visitor.get("/").text)))
    assert "Both are the same model" in visitor.get(f"/compare?a={number}&b={number}").text
    assert visitor.get("/compare?a=1&b=99999").status_code == 404
    assert "Compare two models" in visitor.get("/compare").text
