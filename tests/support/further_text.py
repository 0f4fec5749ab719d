"""Hand in a submission with a text `region` that the package has been given, and look for it everywhere.

python further_text.py FOLDER
"""

import csv
import json
import sys
from pathlib import Path

from msgspec import to_builtins

from medthink.accounts.sessions import make_token
from medthink.board.checking import LoadedBenchmark
from medthink.board.submissions import list_submissions
from medthink.board.worker import process_next
from people import Board
from small_benchmark import write_benchmark

WORDS = "Franconia"


def main(root: Path) -> None:
    """Through the form, the API, the store, the export, the search and the model's page."""
    bench = write_benchmark(root / "bench", cases=8)
    board = Board(root, bench)
    ann = board.add("ann", "submitter", team="North")
    rows = [{"title": f"Case number {number}", "prediction": "A"} for number in range(100, 108)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with board.client(ann) as client:
        assert 'name="region"' in client.get("/submit").text
    with board.client() as client:
        token = make_token(board.store, ann, "test", ("read", "submit"), days=1)
        bearer = {"authorization": f"Bearer {token}"}
        sent = client.post(f"/api/v1/submissions?model=made-7b&region={WORDS}", content=data, headers=bearer).json()
        (stored,) = list_submissions(board.store)
        assert to_builtins(stored.about)["region"] == WORDS
        process_next(board.store, {stored.benchmark_id: LoadedBenchmark.open(bench)})
        client.post(f"/api/v1/submissions/{sent['token']}/publish", headers=bearer)
        (row,) = csv.DictReader(client.get("/api/v1/leaderboard.csv").text.splitlines())
        assert row["region"] == WORDS
        assert "made-7b" in client.get(f"/?q={WORDS}&proof=0").text
        assert "made-7b" not in client.get("/?q=Swabia&proof=0").text
        assert WORDS in client.get(f"/models/{row['number']}").text
    board.store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
