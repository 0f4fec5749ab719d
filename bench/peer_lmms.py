"""The job of `bench_run.py cpu` by lmms-eval: a task of our own over the same cases, and its OpenAI-compatible model.

Run by `peers.py` with the Python that has lmms-eval: python peer_lmms.py URL CASES.JSONL IN_FLIGHT LOGS
"""

import os
import subprocess
import sys
from pathlib import Path

TASK = """
task: noise
dataset_path: json
dataset_kwargs:
  data_files:
    test: {table}
test_split: test
output_type: generate_until
doc_to_visual: !function job.images
doc_to_text: !function job.text
doc_to_target: correct_answer
process_results: !function job.score
generation_kwargs:
  max_new_tokens: 500
metric_list:
  - metric: accuracy
    aggregation: mean
    higher_is_better: true
metadata:
  - version: 0.0
"""

JOB = """
from pathlib import Path

from PIL import Image

ROOT = Path({root!r})


def images(doc):
    return [Image.open(ROOT / doc[f"image_{{slot:02d}}_path"]) for slot in range(1, doc["image_count"] + 1)]


def text(doc, kwargs=None):
    options = "\\n".join(f"{{letter}}. {{name}}" for letter, name in doc["options"].items())
    return doc["CLINICAL_HISTORY"] + "\\n" + options


def score(doc, results):
    return {{"accuracy": float(results[0].strip()[-1:] == doc["correct_answer"])}}
"""


def main() -> None:
    url, table, in_flight, logs = sys.argv[1:]
    folder = Path(logs) / "task"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "noise.yaml").write_text(TASK.format(table=table))
    (folder / "job.py").write_text(JOB.format(root=str(Path(table).parent)))
    model = f"model_version=m,base_url={url},api_key=none,num_concurrent={in_flight},timeout=60"
    words = ["--model", "openai", "--model_args", model, "--tasks", "noise", "--include_path", str(folder)]
    # Its default, PNG, takes five times as long; the images are JPEG.
    env = os.environ | {"HF_HOME": str(folder), "HF_HUB_OFFLINE": "1", "LMMS_IMAGE_ENCODE_FORMAT": "JPEG"}
    sys.exit(subprocess.run([sys.executable, "-m", "lmms_eval", *words], env=env, check=False).returncode)


if __name__ == "__main__":
    main()
