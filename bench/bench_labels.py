"""How right the labelling rules of `curate` are: ICD-10 candidates, timeline, modality, and what is derived.

Real cases are read from ../shared/data where they are; planted texts (`planted_labels.py`) are always there. Run by
`python bench/bench_labels.py`; it leaves with 1 where a bar is not met.
"""

import csv
import hashlib
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path

from planted_labels import captions, timelines

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from drafts import draft, try_stage
from medthink.cases.case import Image, ImageReference
from medthink.cases.icd import icd_problems, is_category, labels_of, who_tree
from medthink.cases.images.stores import FolderImages
from medthink.curate.draft import Draft
from medthink.curate.names import name_key, split_differential
from medthink.curate.stages.icd import find_icd_candidates
from medthink.curate.stages.modality import modality_of
from medthink.curate.stages.timeline import read_timeline

SAMPLE = Path(__file__).resolve().parents[2] / "shared/data/eurorad_sample.csv"
LABELS = Path(__file__).with_name("labels_of_sample.toml")
COUNT, SEED = 600, 17


class Bars:
    """Prints each figure beside its bar, and remembers whether all were met."""

    def __init__(self) -> None:
        self.is_met = True

    def show(self, name: str, good: int, total: int, bar: float | None = None) -> None:
        """One line."""
        share = good / total if total else 0.0
        verdict = "" if bar is None else f"   bar {bar:.2f}: {'met' if share >= bar else 'NOT MET'}"
        self.is_met &= bar is None or share >= bar
        print(f"{name:<58} {good:>5} of {total:<5} {share:.3f}{verdict}")


def chapter(code: str) -> str:
    """The chapter of a category."""
    return str(who_tree().get_ancestors(code)[-1])


def measure_coding(bars: Bars, title: str, named: Iterable[tuple[str, str, set[str]]], *, is_barred: bool) -> None:
    """Candidates for names with their context and accepted categories."""
    ranks, settled, right, total = {1: 0, 5: 0, 20: 0}, 0, 0, 0
    chapters = 0
    for name, context, accepted in named:
        coding = find_icd_candidates(name, context=context)
        codes = [one.category for one in coding.candidates]
        total += 1
        for most in ranks:
            ranks[most] += any(code in accepted for code in codes[:most])
        chapters += any(chapter(code) in {chapter(one) for one in accepted} for code in codes[:5])
        settled += bool(coding.settled)
        right += coding.settled in accepted
    bars.show(f"ICD, {title}: category first", ranks[1], total)
    bars.show(f"ICD, {title}: category in top 5", ranks[5], total)
    bars.show(f"ICD, {title}: category in top 20", ranks[20], total, 0.80 if is_barred else None)
    bars.show(f"ICD, {title}: chapter in top 5", chapters, total, 0.85 if is_barred else None)
    bars.show(f"ICD, {title}: settled by rules", settled, total)
    bars.show(f"ICD, {title}: right where settled", right, settled)


def measure_timelines(bars: Bars, title: str, told: Iterable[tuple[bool, bool]]) -> None:
    """Precision and recall of pairs of said and true."""
    pairs = list(told)
    hits = sum(said and true for said, true in pairs)
    bars.show(f"timeline, {title}: precision", hits, sum(said for said, _ in pairs), 0.75)
    bars.show(f"timeline, {title}: recall", hits, sum(true for _, true in pairs), 0.75)


def measure_sample(bars: Bars) -> None:
    """The real cases."""
    labels = tomllib.loads(LABELS.read_text(encoding="utf-8"))
    rows = list(csv.DictReader(SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)))
    cases = [(int(float(row["case_id"])), row, *row["PostDescription"].partition("Imaging Findings:")) for row in rows]
    coded = [
        (row["FinalDiagnosis"], text, set(labels["icd"][str(number)].split())) for number, row, _, _, text in cases
    ]
    measure_coding(bars, "70 final diagnoses (seen)", coded, is_barred=True)
    names = {
        hashlib.sha256(name_key(name).encode()).hexdigest()[:12]: name
        for row in rows
        for name in split_differential(row["DifferentialDiagnosisList"], row["FinalDiagnosis"])
    }
    held = [
        (names[digest], "", set(codes.split())) for digest, codes in labels["icd_of_names"].items() if digest in names
    ]
    measure_coding(bars, f"{len(held)} other names (held out)", held, is_barred=True)
    timed = labels["timeline"]
    measure_timelines(
        bars,
        "69 cases (seen)",
        (
            (read_timeline({"history": history, "findings": findings}).is_longitudinal, number in timed["several"])
            for number, _, history, _, findings in cases
            if number not in timed["arguable"]
        ),
    )


def measure_planted(bars: Bars) -> None:
    """The planted texts."""
    texts = list(timelines(COUNT, SEED))
    measure_timelines(
        bars,
        f"{COUNT} planted",
        ((read_timeline({"x": one.text}).is_longitudinal, one.truth == "twice") for one in texts),
    )
    found = [(modality_of(one.text), one.truth) for one in captions(COUNT, SEED)]
    decided = [(one.modality, truth) for one, truth in found if one is not None]
    bars.show(f"modality, {COUNT} planted captions: decided", len(decided), len(found), 0.60)
    right = sum(said == truth for said, truth in decided)
    bars.show("modality: right where decided", right, len(decided), 0.97)


def measure_stages(bars: Bars) -> None:
    """The stages themselves on planted cases: every quote checked against its case again, and what a case costs."""
    texts, written = list(timelines(COUNT, SEED)), list(captions(COUNT, SEED))
    names = ("Lipoma", "Caroli disease", "Ependymoma", "Osteoid osteoma", "Dancing megasperm")
    with tempfile.TemporaryDirectory() as folder:
        store = FolderImages(Path(folder))
        drafts = [
            _planted_draft(number, names[number % 5], text.text, caption.text, store)
            for number, (text, caption) in enumerate(zip(texts, written, strict=True), start=1)
        ]
        for stage in ("icd", "timeline", "modality", "discussion"):
            begun = time.process_time()
            trial = try_stage(stage, Path(folder) / stage, drafts)
            cost = 1000 * (time.process_time() - begun) / COUNT
            quotes = [(quote, drafts[case - 1]) for case, one in trial.decisions.items() for quote in one.evidence]
            bars.show(f"{stage}: quotes that stand in their case", sum(q.is_in(d) for q, d in quotes), len(quotes), 1.0)
            print(f"{stage}: {cost:.1f} ms of CPU a case with reading and writing")


def _planted_draft(number: int, name: str, text: str, caption: str, store: FolderImages) -> Draft:
    """A case with one image, and a discussion in which one sentence names a diagnosis that is no option."""
    options = {"A": name, "B": "Schwannoma"}
    said = f"{name} is rare. {text} Myxoma is softer."
    made = draft(number, diagnosis=name, findings=text, discussion=said, options=options)
    made = made.with_notes(differential=f"{name}, Schwannoma, Myxoma")
    image = Image(1, "1", f"images/case{number:05d}/1.jpg", store)
    return made.with_question(images=(image,)).with_reference(images=(ImageReference(caption, "", ""),))


def main() -> int:
    """Measure everything."""
    bars = Bars()
    begun = time.perf_counter()
    find_icd_candidates("x")
    print(f"index of ICD-10 terms built in {time.perf_counter() - begun:.1f} s")
    categories = [code for code in who_tree().get_all_codes() if is_category(code)]
    derived = sum(not icd_problems(*labels_of(code)) for code in categories)
    bars.show("ICD: block and chapter derived without contradiction", derived, len(categories), 1.0)
    measure_planted(bars)
    measure_stages(bars)
    if SAMPLE.exists():
        measure_sample(bars)
    else:
        print(f"no real cases: {SAMPLE} is not there")
    return 0 if bars.is_met else 1


if __name__ == "__main__":
    sys.exit(main())
