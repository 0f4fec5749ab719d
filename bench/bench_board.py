"""How fast a served leaderboard of 500 rows answers 10 clients, alone and while an upload is scored.

    python bench/bench_board.py [ROWS] [CASES]

The board is made without models (`made_board.py`) and served by `medthink serve` with one worker. Each client asks for
the first page again and again over one connection, as browsers do: compressed, once as a visitor, once signed in. The
last column is what an answer costs the web process in processor time, which a busy machine does not change much.
"""

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from made_board import fill_board
from made_cases import write_cases, write_pictures
from medthink.accounts.account import NewAccount, add_account
from medthink.accounts.sessions import begin_session, make_token
from medthink.board.checking import LoadedBenchmark
from medthink.board.worker import refresh_rankings
from medthink.store.engine import Store, store_url
from medthink.web.app.access import COOKIE

ROWS, CASES, CLIENTS, EACH = 500, 720, 10, 60
PROMISED_MS = 100


class Client:
    """One browser: a connection that is kept, and who it belongs to."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Accept-Encoding": "gzip"} | headers

    def ask(self, path: str = "/") -> float:
        """How many milliseconds an answer takes."""
        begin = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        return (time.perf_counter() - begin) * 1000


def ask_together(port: int, headers: dict[str, str], goes_on) -> list[float]:
    """The times of ten clients that ask until told to stop."""

    def ask(_: int) -> list[float]:
        client, times = Client(port, headers), []
        while goes_on(len(times)):
            times.append(client.ask())
        return times

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [one for times in pool.map(ask, range(CLIENTS)) for one in times]


class Meter:
    """Prints what answers took; knows how much processor time the web process has used."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        print(f"{'ten clients, milliseconds':<44}{'median':>8}{'p95':>8}{'asked':>8}{'cpu':>8}")

    def tell(self, what: str, ask) -> bool:
        """Ask, and print the middle, the 95th percentile and the cost of an answer; whether the promise is kept."""
        before = self._used_ms()
        times = ask()
        slow, cpu = statistics.quantiles(times, n=100)[94], (self._used_ms() - before) / len(times)
        print(f"{what:<44}{statistics.median(times):>8.0f}{slow:>8.0f}{len(times):>8}{cpu:>8.1f}", flush=True)
        return slow < PROMISED_MS

    def _used_ms(self) -> float:
        ticks = self._stat.read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) * 1000 / os.sysconf("SC_CLK_TCK")


def upload(port: int, token: str, held: LoadedBenchmark) -> str:
    """Hand a file with texts in; returns the address to follow it at."""
    words = "A well defined mass with contrast enhancement, which displaces the vessels. " * 8
    steps = {"step2_integrated_summary": words, "step3_differential_reasoning": words}
    rows = (
        {"title": case.title, "prediction": "A", "prediction_rationale": words,
         "prediction_twi": steps | {"step1_per_image_findings": [words] * len(case.question.images)}}
        for case in held.cases.values()
    )  # fmt: skip
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/api/v1/submissions?model=new", body, {"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    said = json.loads(answer.read())
    assert answer.status == 202, said
    return f"/api/v1/submissions/{said['token']}"


def is_scored(port: int, token: str, path: str) -> bool:
    """Whether a worker is done with a submission."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    return json.loads(connection.getresponse().read())["status"] == "scored"


def measure(pid: int, port: int, session: str, token: str, held: LoadedBenchmark) -> bool:
    """Ask alone, signed in, and while an upload is scored; whether the promise is kept each time."""
    print(f"first page, nothing kept yet: {Client(port, {}).ask():.0f} ms")
    meter, own = Meter(pid), {"Cookie": f"{COOKIE}={session}"}
    kept = meter.tell("visitors", lambda: ask_together(port, {}, lambda done: done < EACH))
    kept &= meter.tell("signed in", lambda: ask_together(port, own, lambda done: done < EACH))
    path, done = upload(port, token, held), threading.Event()

    def follow() -> None:
        while not is_scored(port, token, path):
            time.sleep(0.5)
        done.set()

    threading.Thread(target=follow, daemon=True).start()
    begin = time.perf_counter()
    kept &= meter.tell(
        "visitors, while an upload is scored", lambda: ask_together(port, {}, lambda _: not done.is_set())
    )
    print(f"the upload was scored after {time.perf_counter() - begin:.0f} s")
    return kept


def main() -> int:
    """Make the board, serve it, measure; 1 where the promise is not kept."""
    rows, cases = (int(word) for word in (sys.argv[1:3] if len(sys.argv) > 2 else (ROWS, CASES)))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(root / "cache")
        write_pictures(root / "pictures")
        bench = write_cases(root / "bench", root / "pictures", cases=cases, images=2)
        store, held = Store(store_url(root / "board.sqlite")), LoadedBenchmark.open(bench)
        board = fill_board(store, held, rows, texts=False)
        refresh_rankings(store, {board.id: held})
        account = add_account(store, NewAccount(name="ann", roles=("submitter",), team="North"), actor="bench")
        session, token = begin_session(store, account), make_token(store, account, "b", ["read", "submit"], days=1)
        store.close()
        command = [sys.executable, "-m", "medthink", "serve", "--no-browser", "--data", str(bench)]
        command += ["--store", str(root / "board.sqlite")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
            try:
                print(f"{rows} rows, {cases} cases")
                return 0 if measure(server.pid, port, session, token, held) else 1
            finally:
                server.terminate()


if __name__ == "__main__":
    sys.exit(main())
