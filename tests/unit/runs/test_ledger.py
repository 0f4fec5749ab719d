"""The ledger keeps what was acknowledged, tells what is known, and answers finished calls."""

import asyncio
from contextlib import closing
from types import SimpleNamespace

import msgspec
import pytest

from ledger_rows import read_rows
from medthink.core.errors import LedgerError
from medthink.core.jsonio import encode_json
from medthink.models.prices import Charge
from medthink.models.request import Attempt, ImagePart, Reply, Request, TextPart, Usage
from medthink.runs.calls.asking import call_for
from medthink.runs.ledger.ledger import Call, Ledger, RecordedCall
from medthink.runs.ledger.schema import _STATEMENTS

REPLY = Reply(text="B", json={"answer": "B"}, usage=Usage(10, 2, 5, 1), model="m-1", latency_s=0.5)


def call(key: str = "k1", case_id: int = 7) -> Call:
    return Call(key=key, asked=f"asked-{key}", case_id=case_id, kind="answer", request='{"system":"…"}'.encode())


def attempt(number: int = 1, outcome: str = "ok") -> Attempt:
    return Attempt(number=number, endpoint="http://127.0.0.1", outcome=outcome, is_sent=True, latency_s=0.1)


@pytest.fixture
def ledger(tmp_path):
    opened = Ledger(tmp_path / "ledger.sqlite")
    yield opened
    opened.close()


async def finish(ledger: Ledger, key: str) -> RecordedCall:
    await ledger.intend(call(key))
    ledger.note_attempt(key, attempt(), Charge(0.25))
    return await ledger.settle(key, REPLY)


def test_a_settled_call_answers_with_the_same_reply(ledger):
    settled = asyncio.run(finish(ledger, "k1"))
    found = ledger.finished("k1")
    assert found is not None
    assert (found.id, found.reply, found.cost_usd) == (settled.id, REPLY, 0.25)
    assert ledger.finished("k2") is None


def test_an_intended_or_failed_call_is_not_finished(ledger):
    async def scene():
        await ledger.intend(call("k1"))
        assert ledger.finished("k1") is None
        await ledger.fail("k1", kind="server", detail="500")
        assert ledger.finished("k1") is None
        await ledger.intend(call("k1"))
        ledger.note_attempt("k1", attempt(), Charge(None))
        await ledger.settle("k1", REPLY)
        assert ledger.finished("k1").cost_usd is None

    asyncio.run(scene())


def test_intent_is_on_disk_before_intend_returns(ledger, tmp_path):
    async def scene():
        await ledger.intend(call("k1"))
        assert read_rows(tmp_path / "ledger.sqlite", "SELECT state FROM calls") == [("open",)]

    asyncio.run(scene())


def test_every_commit_reaches_the_disk(ledger):
    """No test can cut the power; these are the settings under which SQLite promises to survive it."""
    for connection in (ledger._connection, ledger._reader):
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_many_at_once_are_all_kept(ledger):
    async def scene():
        await asyncio.gather(*(finish(ledger, f"k{n}") for n in range(300)))

    asyncio.run(scene())
    assert all(ledger.finished(f"k{n}") for n in range(300))


def test_a_call_may_be_intended_and_settled_at_once_whatever_waits_before_it(ledger):
    async def both() -> RecordedCall:
        await ledger.intend(call("k1"))
        # The reply to another call comes first in the batch, so replies would be written before intents.
        orders = (ledger.settle("k1", REPLY), ledger.intend(call("k2")), ledger.settle("k2", REPLY))
        ledger.note_attempt("k2", attempt(), Charge(0.2))
        return (await asyncio.gather(*orders))[2]

    assert asyncio.run(both()).cost_usd == 0.2
    assert ledger.finished("k2") is not None


def test_a_call_left_open_by_a_dead_process_is_written_down_as_unknown(tmp_path):
    first = Ledger(tmp_path / "ledger.sqlite")
    asyncio.run(first.intend(call("k1"), worst_usd=0.5))
    # The first one is not closed, as if its process had been killed.
    second = Ledger(tmp_path / "ledger.sqlite")
    totals = second.totals()
    second.close()
    first.close()
    assert totals.spent == (0.5, 1), "it may have been billed"
    assert totals.calls == {"failed": 1}


def test_calls_that_waited_for_a_place_when_the_process_died_were_not_sent(tmp_path):
    async def scene(ledger):
        await asyncio.gather(*(ledger.intend(call(f"k{n}"), worst_usd=0.5) for n in range(9)))

    first = Ledger(tmp_path / "ledger.sqlite", places=4)
    asyncio.run(scene(first))
    second = Ledger(tmp_path / "ledger.sqlite", places=2**40)
    totals = second.totals()
    second.close()
    first.close()
    assert (totals.spent.uncounted, totals.attempts, totals.calls) == (4, 4, {"failed": 9})
    unknown = read_rows(tmp_path / "ledger.sqlite", "SELECT call_key FROM attempts ORDER BY 1")
    assert unknown == [("k0",), ("k1",), ("k2",), ("k3",)]


def test_a_call_that_was_stopped_counts_the_attempts_it_made_and_no_more(tmp_path):
    async def scene(ledger):
        await asyncio.gather(ledger.intend(call("sent")), ledger.intend(call("waiting")))
        ledger.note_attempt("sent", attempt(1, "cancelled"), Charge(0.5, is_least=True))

    first = Ledger(tmp_path / "ledger.sqlite")
    asyncio.run(scene(first))
    first.close()
    second = Ledger(tmp_path / "ledger.sqlite")
    totals = second.totals()
    second.close()
    assert (totals.attempts, totals.spent.uncounted) == (1, 1)
    assert totals.calls == {"failed": 2}


def test_a_call_opened_again_keeps_its_id_and_costs_what_all_its_tries_cost(ledger):
    async def scene():
        await finish(ledger, "other")
        await ledger.intend(call("k1"))
        ledger.note_attempt("k1", attempt(1, "invalid_json"), Charge(0.5))
        failed = await ledger.fail("k1", kind="invalid_json", detail="{")
        assert failed == (2, 0.5)
        await finish(ledger, "another")
        return await finish(ledger, "k1")

    settled = asyncio.run(scene())
    assert settled == (2, 0.75)
    assert (ledger.finished("k1").id, ledger.finished("k1").cost_usd) == settled


def test_a_call_made_again_counts_as_made_twice(ledger):
    async def scene():
        for _ in range(3):
            await ledger.intend(call("k1"))
            for number in (1, 2):
                ledger.note_attempt("k1", attempt(number, "server"))
            await ledger.fail("k1", kind="server", detail="500")
        await ledger.intend(call("unsent"))
        await ledger.fail("unsent", kind="unsupported", detail="too large")

    asyncio.run(scene())
    assert ledger.totals().calls_made == 3
    assert ledger.failures() == [("server", "500", 1), ("unsupported", "too large", 1)]


TEXTS = [
    "\u2028\u2029",
    "\"'\\",
    "\0",
    "\ufffe\U0010ffff😀",
    "\x1f\x7f\x85\r\n\t",
    "]},[{",
    "$[0]",
    "e\u0301\u202e",
    "",
    "é" * 90_000,
]


@pytest.mark.parametrize("most_bytes", [64 * 1024 * 1024, 1000])
def test_every_value_is_kept_exactly_whatever_waits_with_it(ledger, monkeypatch, most_bytes):
    monkeypatch.setattr("medthink.runs.ledger.schema._MOST_BYTES", most_bytes)
    replies = [Reply(text=text, json={text: [text]}, reasoning=text, latency_s=0.1 + 0.2) for text in TEXTS]
    cost_usd = (3 * 0.15 + 7 * 0.0251) / 1_000_000

    async def keep(number, reply):
        request = encode_json({"parts": [["text", reply.text]]})
        await ledger.intend(call(f"k{number}")._replace(request=request))
        ledger.note_attempt(f"k{number}", attempt(), Charge(cost_usd))
        await ledger.settle(f"k{number}", reply)
        await ledger.save_prediction(number, 0, state="ok", body=request)

    async def scene():
        await asyncio.gather(*(keep(number, reply) for number, reply in enumerate(replies)))

    asyncio.run(scene())
    for number, reply in enumerate(replies):
        found = ledger.finished(f"k{number}")
        assert (found.reply, found.cost_usd) == (reply, cost_usd)
    bodies = [encode_json({"parts": [["text", text]]}) for text in TEXTS]
    assert list(ledger.predictions()) == bodies
    rows = read_rows(ledger.path, "SELECT request FROM calls ORDER BY case_id, key")
    assert sorted(request for (request,) in rows) == sorted(body.decode() for body in bodies)
    assert ledger.totals().attempts == len(TEXTS)


def test_after_a_record_that_could_not_be_written_no_other_is(ledger):
    async def scene():
        await ledger.intend(call("k1"))
        # No column takes a null here, so this record fails; nobody waits for it.
        ledger.note_attempt("k1", msgspec.structs.replace(attempt(), outcome=None))
        await asyncio.sleep(0.1)
        await ledger.settle("k1", REPLY)

    with pytest.raises(LedgerError, match="NOT NULL"):
        asyncio.run(scene())
    ledger.close()
    assert read_rows(ledger.path, "SELECT state FROM calls") == [("open",)]


def test_a_cancelled_task_does_not_take_its_record_with_it(ledger):
    async def scene():
        await ledger.intend(call("k1"))
        task = asyncio.create_task(ledger.settle("k1", REPLY))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scene())
    ledger.close()
    rows = read_rows(ledger.path, "SELECT state FROM calls")
    assert rows == [("done",)]


def test_totals_add_up(ledger):
    async def scene():
        await asyncio.gather(finish(ledger, "k1"), finish(ledger, "k2"))
        await ledger.intend(call("k3"))
        ledger.note_attempt("k3", attempt(1, "server"))
        await ledger.fail("k3", kind="server", detail="500")

    asyncio.run(scene())
    totals = ledger.totals()
    assert totals.calls == {"done": 2, "failed": 1}
    assert totals.attempts == 3
    assert totals.spent.cost_usd == 0.5


def test_one_unpriced_call_makes_the_cost_unknown(ledger):
    async def scene():
        await finish(ledger, "k1")
        await ledger.intend(call("k2"))
        ledger.note_attempt("k2", attempt(), Charge(None))
        await ledger.settle("k2", REPLY)

    asyncio.run(scene())
    assert ledger.totals().spent.cost_usd is None


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(LedgerError, match="the ledger is damaged: file is not a database"):
        Ledger(path)


def test_predictions_come_back_in_order(ledger):
    async def scene():
        for case_id, sample in [(9, 0), (2, 1), (2, 0)]:
            await ledger.save_prediction(case_id, sample, state="ok", body=f"[{case_id},{sample}]".encode())

    asyncio.run(scene())
    assert list(ledger.predictions()) == [b"[2,0]", b"[2,1]", b"[9,0]"]


@pytest.mark.parametrize(
    ("input_tokens", "images", "doubts"),
    # 400 bytes of text are about 100 tokens; an image has at least 64.
    [(100 + 2 * 64, 2, (1, 0)), (100 + 2 * 64 - 1, 2, (1, 1)), (100, 1, (1, 1)), (5, 0, (0, 0)), (None, 2, (0, 0))],
)
def test_replies_that_count_too_few_tokens_for_their_images_are_doubted(ledger, input_tokens, images, doubts):
    picture = ImagePart.from_bytes(b"", "image/jpeg", width=1, height=1)
    request = Request(system="s" * 200, parts=(TextPart("t" * 200), *[picture] * images))
    usage = None if input_tokens is None else Usage(input=input_tokens)

    async def scene():
        asked = call_for("server/m", SimpleNamespace(kind="answer"), request, 7)
        await ledger.intend(asked)
        ledger.note_attempt(asked.key, attempt())
        await ledger.settle(asked.key, Reply(text="B", usage=usage))

    asyncio.run(scene())
    assert ledger.totals().image_warnings == doubts


def test_an_embedded_reader_is_not_suspected_of_ignoring_images(ledger):

    async def scene():
        await ledger.intend(call("k1")._replace(least_tokens=64))
        await ledger.settle("k1", Reply(text="B", usage=Usage()))

    asyncio.run(scene())
    assert ledger.totals().image_warnings == (0, 0)


@pytest.mark.parametrize("kind", ["intent", "queued", "attempt", "reply", "failure", "prediction"])
def test_no_record_is_written_by_going_through_a_whole_table(tmp_path, kind):
    with closing(Ledger(tmp_path / "ledger.sqlite")) as ledger:
        steps = ledger.connection.execute(f"EXPLAIN QUERY PLAN {_STATEMENTS[kind]}", ("[]",)).fetchall()
    tables = {step[-1] for step in steps if step[-1].startswith("SCAN")}
    assert tables <= {"SCAN json_each VIRTUAL TABLE INDEX 1:"}, tables
