"""Written steps against the expert's text: findings per image, the integrated summary, the discussion.

Means go from image to case to benchmark, so that a case with many images weighs no more than one with few, and the
interval is a bootstrap over cases.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from medthink.metrics.aggregate import mean_by_group
from medthink.metrics.bleu import bleu2
from medthink.metrics.discussion import SECTIONS, section_coverage, split_discussion
from medthink.metrics.findings.agreement import compare_findings
from medthink.metrics.registry import METRICS
from medthink.metrics.rouge import KINDS, Rouge
from medthink.metrics.spelling import normalise_spelling
from medthink.scoring.material import Material
from medthink.scoring.scores import MetricScore, TextScores
from medthink.stats.bootstrap import replicate_interval, resample_totals
from medthink.stats.estimate import Measured, Undefined

PairState = Literal["ok", "missing", "empty", "extra", "no reference"]
Columns = dict[str, list[float | None]]

LEVEL = 0.95
RESAMPLES = 10_000


class Pair(NamedTuple):
    """One written text beside the expert's; `group` is the modality it is about, or a section's name."""

    case: int
    state: PairState
    reference: str
    candidate: str
    group: str


def finding_pairs(material: Material) -> Iterator[Pair]:
    """Step 1: every image's finding beside its caption; an image without one is `missing`."""
    for one in material.predictions:
        case = material.cases[one.case]
        captions = {
            image.slot: (known.caption, known.modality)
            for image, known in zip(case.question.images, case.reference.images, strict=True)
        }
        written = (one.prediction_twi and one.prediction_twi.step1_per_image_findings) or ()
        for place, slot in enumerate(one.slots):
            caption, modality = captions[slot]
            yield _pair(one.case, caption, written[place] if place < len(written) else None, modality)
        for text in written[len(one.slots) :]:
            yield Pair(one.case, "extra", "", text or "", "")


def summary_pairs(material: Material) -> Iterator[Pair]:
    """Step 2: the summary beside the expert's integrated findings."""
    for one in material.predictions:
        written = one.prediction_twi.step2_integrated_summary if one.prediction_twi else None
        yield _pair(one.case, material.cases[one.case].reference.findings, written, "")


def discussion_pairs(material: Material) -> Iterator[Pair]:
    """The discussion, section by section."""
    for one in material.predictions:
        sections = split_discussion(material.cases[one.case].reference.discussion).sections
        for section in SECTIONS:
            yield _pair(one.case, sections.get(section, ""), (one.discussion or {}).get(section), section)


def score_texts(step: str, pairs: Iterable[Pair], *, rng: np.random.Generator) -> TextScores:
    """Every offline text metric over the pairs that are ok, and how many are not."""
    listed = list(pairs)
    usable = [pair for pair in listed if pair.state == "ok"]
    columns = text_columns([pair.reference for pair in usable], [pair.candidate for pair in usable])
    groups = sorted({pair.group for pair in usable if pair.group})
    return TextScores(
        step=step,
        states=dict(sorted(Counter(pair.state for pair in listed).items())),
        metrics=_mean_scores(columns, [pair.case for pair in usable], rng=rng),
        by_group={group: _score_group(columns, usable, group, rng=rng) for group in groups},
    )


def text_columns(references: Sequence[str], candidates: Sequence[str]) -> Columns:
    """A value a pair for every metric of texts, by metric name."""
    columns: Columns = {}
    plain = Rouge(KINDS).score_all(references, candidates)
    folded = Rouge(KINDS).score_all(map(normalise_spelling, references), map(normalise_spelling, candidates))
    for kind in KINDS:
        columns[kind] = [overlaps[kind].f1 for overlaps in plain]
        columns[f"{kind}_norm"] = [overlaps[kind].f1 for overlaps in folded]
    columns["bleu2"] = [bleu2(ref, cand) for ref, cand in zip(references, candidates, strict=True)]
    agreements = [compare_findings(ref, cand) for ref, cand in zip(references, candidates, strict=True)]
    columns["finding_precision"] = [one.precision for one in agreements]
    columns["finding_recall"] = [one.recall for one in agreements]
    columns["finding_f1"] = [one.f1 for one in agreements]
    columns["finding_conflicts"] = [float(len(one.conflicts)) for one in agreements]
    return columns


def score_coverage(material: Material, *, rng: np.random.Generator) -> MetricScore:
    """The share of the reference's sections that a discussion has; a discussion that never came covers none."""
    references = [material.cases[one.case].reference.discussion for one in material.predictions]
    written = [
        "\n\n".join(f"{name.replace('_', ' ')}:\n{text}" for name, text in (one.discussion or {}).items())
        for one in material.predictions
    ]
    columns: Columns = {"section_coverage": section_coverage(references, written)}
    return _mean_scores(columns, [one.case for one in material.predictions], rng=rng)[0]


def case_means(columns: Columns, cases: Sequence[int]) -> dict[str, dict[int, float]]:
    """Each metric's mean for every case that has one."""
    return {
        name: {
            int(str(case)): mean.value for case, mean in mean_by_group(values, cases).items() if mean.value is not None
        }
        for name, values in columns.items()
    }


def _pair(case: int, reference: str, candidate: str | None, group: str) -> Pair:
    state: PairState = "ok"
    if not reference.strip():
        state = "no reference"
    elif candidate is None:
        state = "missing"
    elif not candidate.strip():
        state = "empty"
    return Pair(case, state, reference, candidate or "", group)


def _score_group(
    columns: Columns, usable: list[Pair], group: str, *, rng: np.random.Generator
) -> tuple[MetricScore, ...]:
    rows = [place for place, pair in enumerate(usable) if pair.group == group]
    part: Columns = {name: [values[row] for row in rows] for name, values in columns.items()}
    return _mean_scores(part, [usable[row].case for row in rows], rng=rng)


def _mean_scores(columns: Columns, cases: Sequence[int], *, rng: np.random.Generator) -> tuple[MetricScore, ...]:
    """The mean over cases of every metric, all from the same resampled cases."""
    means = case_means(columns, cases)
    order = sorted(set(cases))
    sums = np.zeros((len(order), 2 * len(means)))
    place = {case: row for row, case in enumerate(order)}
    for column, by_case in enumerate(means.values()):
        for case, value in by_case.items():
            sums[place[case], 2 * column : 2 * column + 2] = value, 1.0
    drawn = resample_totals(sums, resamples=RESAMPLES, rng=rng) if len(order) > 1 else None
    return tuple(_score(name, sums[:, 2 * i], sums[:, 2 * i + 1], _columns(drawn, i)) for i, name in enumerate(means))


Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _columns(drawn: Array | None, index: int) -> tuple[Array, Array] | None:
    return None if drawn is None else (drawn[:, 2 * index], drawn[:, 2 * index + 1])


def _score(name: str, values: Array, known: Array, drawn: tuple[Array, Array] | None) -> MetricScore:
    metric = METRICS[name]
    return MetricScore(
        metric=name, version=metric.version, direction=metric.direction, value=_estimate(values, known, drawn)
    )


def _estimate(values: Array, known: Array, drawn: tuple[Array, Array] | None) -> Measured:
    n = int(known.sum())
    if n == 0:
        return Undefined(reason="no pair has a value", n=0)
    value = float(values.sum() / n)
    if drawn is None or n < 2:
        return Undefined(reason="one case shows no spread", n=n, value=value)
    with np.errstate(invalid="ignore"):
        replicates = drawn[0] / drawn[1]
    return replicate_interval(value, replicates, n=n, groups=n, level=LEVEL, method="percentile bootstrap over cases")
