"""The job of `bench_run.py cpu` by VLMEvalKit: a table of our own, its model for any server, its exact matching.

Run by `peers.py` with the Python that has VLMEvalKit: python peer_vlmeval.py URL CASES.JSONL IN_FLIGHT LOGS
"""

import csv
import json
import os
import sys
from pathlib import Path


def write_table(cases: Path, table: Path) -> int:
    """Its form of a multiple-choice table, images by path; how many rows it has."""
    lines = cases.read_text().splitlines()
    rows = [make_row(number, json.loads(line), cases.parent) for number, line in enumerate(lines)]
    with table.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def make_row(number: int, row: dict, root: Path) -> dict:
    paths = [str(root / row[f"image_{slot:02d}_path"]) for slot in range(1, row["image_count"] + 1)]
    asked = {"index": number, "question": row["CLINICAL_HISTORY"], "image_path": paths}
    return asked | row["options"] | {"answer": row["correct_answer"]}


def name_operators() -> None:
    """Let torchvision be imported beside a torch without CUDA, where the two operators it asks for are missing."""
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float threshold) -> Tensor")


def main() -> None:
    url, cases, in_flight, logs = sys.argv[1:]
    folder = Path(logs).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"LMUData": str(folder), "HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    count = write_table(Path(cases), folder / "noise.tsv")
    name_operators()
    from vlmeval import run
    from vlmeval.smp import load

    words = ["--data", "noise", "--model", "m", "--base-url", url, "--api-nproc", in_flight, "--max-tokens", "500"]
    sys.argv[1:] = [*words, "--judge", "exact_matching", "--work-dir", str(folder)]
    run.main()
    # It ends with success even when a job of it failed.
    table = load(str(folder / "m" / "m_noise.xlsx"))
    answered = {index for index, said in zip(table["index"], table["prediction"], strict=True) if "ANSWER" in said}
    if len(answered) != count or not (folder / "m" / "m_noise_acc.csv").exists():
        sys.exit(f"{len(answered)} of {count} cases answered, or no score")


if __name__ == "__main__":
    main()
