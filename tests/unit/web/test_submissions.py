"""Handing in by the browser: taken in cheaply, followed to its end, seen by its team, decided on by maintainers."""

import json
import re

import pytest

from medthink.board.checking import LoadedBenchmark
from medthink.board.queue import claim, fail
from medthink.board.submissions import find_submission, list_submissions
from medthink.board.worker import process_next
from medthink.cli.command import run_command
from medthink.web.app.server import ServeSettings
from people import FROM_HERE, Board, send
from small_benchmark import make_row, write_benchmark

CASES = 8
CANARY = "CANARYGOLD"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("submissions") / "bench", cases=CASES)


@pytest.fixture(scope="module")
def held(bench):
    return LoadedBenchmark.open(bench)


@pytest.fixture
def make_board(tmp_path, bench, held):
    made = []

    def make(**settings):
        board = Board(tmp_path, bench, ServeSettings(**settings))
        board.boss = board.add("boss", "maintainer")
        board.ann = board.add("ann", "submitter", team="North")
        board.eve = board.add("eve", "submitter", team="East")
        board.work = lambda: process_next(board.store, {board.served.benchmark.id: held})
        made.append(board)
        return board

    yield make
    for board in made:
        board.store.close()


@pytest.fixture
def board(make_board):
    return make_board(uploads_per_day=3)


def lines(letter="A", **fields):
    rows = [{"title": f"Case number {number}", "prediction": letter, **fields} for number in range(100, 100 + CASES)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def hand_in(client, data=None, **form):
    form = {"model": "made-7b"} | form
    files = {"file": ("predictions.jsonl", lines() if data is None else data)}
    return client.post("/submit", data=form, files=files, headers=FROM_HERE, follow_redirects=False)


def test_a_file_goes_from_upload_to_publication(board):
    with board.client(board.ann) as client, board.client() as visitor:
        assert "0 of 3" in client.get("/submit").text
        at = hand_in(client, family="Made", notes="the second try").headers["location"]
        page = client.get(at).text
        assert "Next in the queue" in page and "data-running" in page and 'http-equiv="refresh"' in page
        board.work()
        page = client.get(at).text
        assert "25.0 %" in page and "the first file" in page and "Only your team and the maintainers see this" in page
        assert "made-7b" not in visitor.get("/").text
        assert send(client, f"{at}/publish").headers["location"] == at
        assert "It is on the board" in client.get(at).text and "made-7b" in visitor.get("/").text
        assert "1 of 3" in client.get("/submit").text
        second = hand_in(client, lines("B")).headers["location"]
        board.work()
        assert "not distinguishable" in client.get(second).text
        assert send(client, f"{second}/discard").status_code == 303
        assert "discarded by its team" in client.get(second).text
        assert send(client, f"{at}/withdraw", words=" ").status_code == 422
        assert send(client, f"{at}/withdraw", words="a wrong checkpoint").status_code == 303
        assert "a wrong checkpoint" in visitor.get("/").text


def test_the_same_file_is_the_same_submission(board):
    with board.client(board.ann) as client:
        first = hand_in(client).headers["location"]
        assert hand_in(client, model="another name").headers["location"] == first
    assert len(list_submissions(board.store)) == 1


def test_problems_are_those_of_the_command_to_the_byte_and_cost_nothing(board, bench, tmp_path, capsys):
    bad = lines().replace(b'"A"', b'"F"', 2) + b"{nonsense\n"
    (tmp_path / "bad.jsonl").write_bytes(bad)
    with board.client(board.ann) as client:
        at = hand_in(client, bad).headers["location"]
        board.work()
        page = client.get(at).text
        assert "3 problems" in page and "“F” is not one of A, B, C, D, E" in page and "not JSON" in page
        told = client.get(f"{at}/problems.txt")
        assert "attachment" in told.headers["content-disposition"]
        assert "0 of 3" in client.get("/submit").text
    capsys.readouterr()
    assert run_command(["submission", "check", str(tmp_path / "bad.jsonl"), "--data", str(bench)]) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("line ")] == told.text.splitlines()


def test_a_full_quota_refuses_another_file_and_knows_one_sent_twice(board):
    with board.client(board.ann) as client:
        *_, last = [hand_in(client, lines(letter)).headers["location"] for letter in "ABC"]
        answer = hand_in(client, lines("D"))
        assert answer.status_code == 422 and "of 3 allowed" in answer.text
        # The answer to the last one was lost, and it is sent again.
        assert hand_in(client, lines("C")).headers["location"] == last
        sent = client.post("/api/v1/submissions?model=made-7b", content=lines("C"), headers=FROM_HERE)
        assert (sent.status_code, sent.json()["token"]) == (202, last.rsplit("/", 1)[1])


def test_what_is_missing_is_said_and_what_was_typed_stays(board):
    with board.client(board.ann) as client:
        answer = client.post("/submit", data={"model": "made-7b", "notes": "typed"}, headers=FROM_HERE)
        assert answer.status_code == 422 and "No file was chosen" in answer.text and "typed" in answer.text
        assert "The model has no name" in hand_in(client, model=" ").text
        assert "The link is not a web address" in hand_in(client, link="javascript:alert(1)").text
        assert hand_in(client, model="m" * 201).status_code == 422
        assert hand_in(client, notes="bell \x07").status_code == 422
    assert list_submissions(board.store) == []


def test_a_file_over_the_limit_is_refused_by_its_announced_size(make_board):
    board = make_board(largest_upload_mb=1)
    with board.client(board.ann) as client:
        assert hand_in(client, b"x" * (2 << 20)).status_code == 413

        def endless():
            for _ in range(64):
                yield b"x" * (1 << 16)

        headers = FROM_HERE | {"content-type": "multipart/form-data; boundary=b"}
        assert client.post("/submit", content=endless(), headers=headers).status_code == 413
    with board.client() as visitor:
        assert hand_in(visitor, b"x" * (2 << 20)).status_code == 401


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data; boundary=b", b"--b\r\nnonsense"),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="model"\r\n'
         b"Content-Type: text/plain; charset=nonsense\r\n\r\nx\r\n--b--\r\n"),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="model"'
         b"\r\n\r\n\xff\xfe\r\n--b--\r\n"),
        ("multipart/form-data", b"x"),
        ("application/json", b'{"model": 1}'),
        ("text/plain", b"x"),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\nx\r\n' * 1001
         + b"--b--\r\n"),
    ],
    ids=["broken", "charset", "not utf-8", "no boundary", "json", "text", "1,001 parts"],
)  # fmt: skip
def test_what_is_no_form_is_a_clients_error(board, content_type, body):
    with board.client(board.ann) as client:
        answer = client.post("/submit", content=body, headers=FROM_HERE | {"content-type": content_type})
        assert 400 <= answer.status_code < 500, answer.text


def test_gold_in_an_upload_is_never_read_or_shown(board, held):
    forged = [make_row(number, 2) | {"prediction": "A", "correct_answer": "A", "discussion": CANARY}
              for number in range(100, 100 + CASES)]  # fmt: skip
    with board.client(board.ann) as client:
        at = hand_in(client, "".join(json.dumps(row) + "\n" for row in forged).encode()).headers["location"]
        board.work()
        page = client.get(at).text
        assert "25.0 %" in page and CANARY not in page and "WITHHELD" not in page
        send(client, f"{at}/publish")
        number = find_submission(board.store, at.rsplit("/", 1)[1]).id
        assert CANARY not in client.get(f"/models/{number}").text


def test_others_do_not_see_it_at_all(board):
    with board.client(board.ann) as ann:
        at = hand_in(ann).headers["location"]
        board.work()
    with board.client(board.eve) as eve, board.client(board.boss) as boss, board.client() as visitor:
        for address in (at, f"{at}/problems.txt", "/submissions/nothing"):
            assert eve.get(address).status_code == 404
            assert visitor.get(address, follow_redirects=False).status_code == 303
        for act in ("publish", "discard", "withdraw", "again"):
            assert send(eve, f"{at}/{act}").status_code == 404
        assert "made-7b" not in eve.get("/submit").text
        assert boss.get(at).status_code == 200
        assert "made-7b" in boss.get("/queue").text and eve.get("/queue").status_code == 403
        assert (
            "made-7b" not in boss.get("/queue?q=nobody").text
            and "No matching submissions" in boss.get("/queue?q=x1").text
        )
        assert "made-7b" in boss.get("/queue?status=scored").text
        for act in ("approve", "decline", "annotate", "flag"):
            assert send(eve, f"{at}/{act}", words="x").status_code == 403
    assert find_submission(board.store, at.rsplit("/", 1)[1]).status == "scored"


def test_where_maintainers_approve_nothing_is_public_without_them(make_board):
    board = make_board(needs_approval=True)
    with board.client(board.ann) as ann, board.client(board.boss) as boss, board.client() as visitor:
        at = hand_in(ann).headers["location"]
        board.work()
        assert "Ask for publication" in ann.get(at).text
        send(ann, f"{at}/publish")
        assert "waiting for approval" in ann.get(at).text and "made-7b" not in visitor.get("/").text
        assert send(boss, f"{at}/decline", words="which checkpoint?").status_code == 303
        assert "which checkpoint?" in ann.get(at).text
        send(ann, f"{at}/publish")
        assert send(boss, f"{at}/approve").status_code == 303
        assert "which checkpoint?" not in re.sub(r"<tbody id=\"history\".*", "", ann.get(at).text, flags=re.S)
        assert "made-7b" in visitor.get("/").text
        send(boss, f"{at}/annotate", words="Re-run in May.")
        send(boss, f"{at}/flag", words="Trained on the test split?")
        number = find_submission(board.store, at.rsplit("/", 1)[1]).id
        page = visitor.get(f"/models/{number}").text
        assert "Re-run in May." in page and "Trained on the test split?" in page
        assert "flagged" in visitor.get("/").text


def test_what_failed_through_our_fault_is_checked_again(board):
    with board.client(board.ann) as client:
        at = hand_in(client).headers["location"]
        fail(board.store, claim(board.store), "the disk was full")
        assert "an error on our side" in client.get(at).text
        assert send(client, f"{at}/again").status_code == 303
        board.work()
        assert "25.0 %" in client.get(at).text


def test_one_without_a_team_is_told_so(board):
    alone = board.add("alone", "submitter")
    with board.client(alone) as client:
        assert "has no team" in client.get("/submit").text
        assert "Your account has no team" in hand_in(client).text
    reader = board.add("reader", "reader")
    with board.client(reader) as client:
        assert hand_in(client).status_code == 403


def test_a_board_without_files_takes_no_submissions(tmp_path):
    board = Board(tmp_path)
    with board.client() as client:
        assert client.get("/submit").status_code == 404 and ">Submit<" not in client.get("/").text
    board.store.close()
