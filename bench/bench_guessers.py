"""What the guessers of `medthink audit` cost on a benchmark of the released size, the first time and the second.

    python bench/bench_guessers.py [CASES]

One case in eleven is in the test split, the others are in the train split; 6.6 images a case, each a file of its own of
about 25 KB, and texts in made-up words. CPU seconds and peak memory are those of the whole command and its children.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from made_cases import make_row

CASES = 8_067
TEST_SHARE = 11
IMAGES = 6.6
DISTINCT = 64
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u")]


def write_bench(root: Path, cases: int) -> None:
    """The benchmark; every image is one of 64 pictures with a comment of its own, so that all digests differ."""
    rng = np.random.default_rng(1)
    lexicon = ["".join(rng.choice(SYLLABLES, 3)) for _ in range(4_000)]
    diagnoses = [" ".join(rng.choice(lexicon, rng.integers(1, 4))) for _ in range(3_000)]
    pictures = [picture(number) for number in range(DISTINCT)]
    root.mkdir()
    used = 0
    with (root / "train.jsonl").open("w") as train, (root / "test.jsonl").open("w") as test:
        for number in range(1, cases + 1):
            count = round(number * IMAGES) - used
            options = dict(zip("ABCDE", rng.choice(diagnoses, 5, replace=False).tolist(), strict=True))
            row = make_row(number, count) | {"options": options, "CLINICAL_HISTORY": " ".join(rng.choice(lexicon, 60))}
            row["correct_answer_text"] = options[row["correct_answer"]]
            (train if number % TEST_SHARE else test).write(json.dumps(row) + "\n")
            folder = root / f"images/case{number:05d}"
            folder.mkdir(parents=True)
            for slot in range(count):
                data = pictures[(used + slot) % DISTINCT]
                (folder / f"i{number}x{slot + 1}.jpg").write_bytes(with_comment(data, f"{number}.{slot}".encode()))
            used += count


def picture(number: int) -> bytes:
    """A noisy JPEG of about 25 KB."""
    pixels = np.random.default_rng(number).integers(0, 255, (190, 190), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=85)
    return stream.getvalue()


def with_comment(data: bytes, comment: bytes) -> bytes:
    """The JPEG with a comment behind its first mark."""
    return data[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + data[2:]


def measure(bench: Path, cache: Path) -> tuple[float, float]:
    """CPU seconds and peak megabytes of one audit."""
    words = [sys.executable, "-m", "medthink", "audit", str(bench), "--split", "test"]
    process = subprocess.Popen(words, env=os.environ | {"XDG_CACHE_HOME": str(cache)}, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"medthink audit ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Audit the same benchmark twice with an empty cache at first."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    with tempfile.TemporaryDirectory() as folder:
        bench, cache = Path(folder) / "bench", Path(folder) / "cache"
        write_bench(bench, cases)
        for time in ("first", "second"):
            seconds, megabytes = measure(bench, cache)
            print(f"{time} audit of {cases:,} cases: {seconds:.1f} CPU s, {megabytes:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
