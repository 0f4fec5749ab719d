"""The job of `bench_run.py cpu` by Inspect AI: one multi-image question a case, scored by its own choice scorer.

Run by `peers.py` with the Python that has Inspect AI: python peer_inspect.py URL CASES.JSONL IN_FLIGHT LOGS
"""

import json
import sys
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, GenerateConfig, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice


def read_cases(table: Path) -> list[Sample]:
    return [read_case(json.loads(line), table.parent) for line in table.read_text().splitlines()]


def read_case(row: dict, root: Path) -> Sample:
    paths = [str(root / row[f"image_{slot:02d}_path"]) for slot in range(1, row["image_count"] + 1)]
    content = [ContentText(text=row["CLINICAL_HISTORY"]), *(ContentImage(image=path) for path in paths)]
    return Sample(
        input=[ChatMessageUser(content=content)],
        choices=list(row["options"].values()),
        target=row["correct_answer"],
        id=row["title"],
    )


def main() -> None:
    url, table, in_flight, logs = sys.argv[1:]
    limits = {"max_connections": int(in_flight), "max_tokens": 500}
    model = get_model("openai/m", base_url=url, api_key="none", responses_api=False, config=GenerateConfig(**limits))
    task = Task(dataset=MemoryDataset(read_cases(Path(table))), solver=multiple_choice(), scorer=choice())
    (log,) = eval(task, model=model, display="none", log_dir=logs, log_images=False, max_samples=int(in_flight))
    if log.status != "success" or len(log.samples) != len(task.dataset):
        sys.exit(f"{log.status}: {log.error}")


if __name__ == "__main__":
    main()
