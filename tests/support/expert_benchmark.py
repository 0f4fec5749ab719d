"""A small benchmark whose experts write as radiologists do, so that their sentences can be edited."""

import json
from pathlib import Path

from small_benchmark import write_benchmark

FINDINGS = (
    "CT showed a large mass in the left kidney. There was no evidence of fat or calcification. The mass measured 12 mm."
    " An ill-defined margin was seen. The renal vein was narrow.",
    "MRI revealed a hyperintense lesion in the right temporal region. Discitis at L3–L4 was seen."
    " The posterior horn was torn. No haemorrhage was seen. The skull was intact.",
    "A nodule of 2.5 cm was seen in the upper lobe of the lung. The nodule grew. There was a rib notch."
    " CT showed a pleural effusion on the left. The lungs were otherwise quiet.",
)
DISCUSSION = (
    "Background\n{answer} is a rare tumour. Patients feel pain.\n\nImaging Perspective\nCT showed a mass, and the mass"
    " is decisive. {other} would be smaller."
)


def write_expert_benchmark(root: Path, cases: int = 12) -> Path:
    """Cases from 100 on, whose findings come from three texts in turn."""
    write_benchmark(root, cases=cases, images=1)
    rows = [json.loads(line) for line in (root / "test.jsonl").read_text().splitlines()]
    for place, row in enumerate(rows):
        row["IMAGING_FINDINGS"] = FINDINGS[place % len(FINDINGS)]
        other = next(text for text in row["options"].values() if text != row["correct_answer_text"])
        row["discussion"] = DISCUSSION.format(answer=row["correct_answer_text"], other=other)
    (root / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root
