"""The runs of a report: scored, labelled, and grouped into comparable ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.core.markup import clean, one_line
from medthink.core.numbers import count_of
from medthink.runs.manifest import Manifest
from medthink.runs.selection import Selection
from medthink.scoring.comparable import comparable_kind, is_whole, rank_together
from medthink.scoring.inputs import SUBMISSION, ScoringInput, load_all
from medthink.scoring.score import cached_scores
from medthink.scoring.scores import AnswerScores, PartialRun, Scores
from medthink.stats.comparisons.ranks import RankedRun, Ranking
from medthink.stats.estimate import Measured, value_of
from medthink.workflow.condition import FIELDS, Condition
from medthink.workflow.tasks import default_condition, ends_in_answer

_LONGEST = 60
# Providers that indicate the kind of model.
_TELLING = ("baseline/", "replay/")


# A number with b or m that no letter or digit touches: "27b", "0.8B", "270m"; "a3b" is the active part, "8x7b" no sum.
def model_shown(model: str) -> str:
    """The model as a page names it: only the name of a replayed run's folder, because its path is not part of a run."""
    return f"replay/{Path(model).name}" if model.startswith("replay/") else model


def run_names(paths: Sequence[Path]) -> list[str]:
    """The shortest unique ends of the paths."""
    whole = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, whole), default=1) + 1):
        names = ["/".join(parts[-length:]) for parts in whole]
        if len(set(names)) == len(set(whole)):
            break
    return names


def run_labels(manifests: Sequence[Manifest], names: Sequence[str]) -> list[str]:
    """A label for every run: the model, then task and condition where runs of that model differ in them."""
    models = short_models([manifest.model for manifest in manifests])
    labels = []
    for manifest in manifests:
        same = [other for other in manifests if other.model == manifest.model]
        labels.append(one_line(" · ".join([models[manifest.model], *_distinctions(manifest, same)]), _LONGEST))
    counts = Counter(labels)
    # Tables find a run by its label: the distinguishing part is never cut off.
    return [
        label if counts[label] == 1 else f"{label} ({clean(name)})" for label, name in zip(labels, names, strict=True)
    ]


def short_models(models: Sequence[str]) -> dict[str, str]:
    """Model names, without the provider where they stay unique."""
    bare = {model: model if model.startswith(_TELLING) else model.partition("/")[2] or model for model in models}
    counts = Counter(bare.values())
    return {model: name if counts[name] == 1 else model for model, name in bare.items()}


def _distinctions(manifest: Manifest, same: list[Manifest]) -> list[str]:
    words = [manifest.task] if _is_task_said(manifest, same) else []
    # Tasks have their own default conditions; only differences within the task are mentioned.
    within = [other.condition for other in same if other.task == manifest.task]
    for field in FIELDS:
        value = getattr(manifest.condition, field.name)
        differs = len({getattr(condition, field.name) for condition in within}) > 1
        # Defaults are not mentioned, except the share of images, which is a number on a scale.
        if differs and (field.name == "image_share" or value != getattr(default_condition(manifest.task), field.name)):
            words.append(field.say(value))
    return words


def _is_task_said(manifest: Manifest, same: list[Manifest]) -> bool:
    """Whether the label names the task: always for a discussion, for answer tasks only if there are several."""
    return not ends_in_answer(manifest.task) or len({other.task for other in same if ends_in_answer(other.task)}) > 1


class ReportRun(NamedTuple):
    """One run or submission file: its path, its name, its label in figures, its predictions and its scores.

    A submission has a manifest too, with the known fields: its benchmark, and the file's name as the model.
    """

    path: Path
    name: str
    label: str
    manifest: Manifest
    material: ScoringInput
    scores: Scores

    @property
    def is_submission(self) -> bool:
        """Whether these are predictions made elsewhere."""
        return self.material.manifest is None

    @property
    def accuracy(self) -> Measured | None:
        """The headline accuracy, or None for a run without letters."""
        return self.scores.answers.accuracy if self.scores.answers else None


class ComparableGroup(NamedTuple):
    """Runs on the same cases under conditions of one kind, best first; those without letters at the end.

    `ranking` is None when there is nothing to rank; its runs are numbered as in `lettered`.
    """

    benchmark: str
    split: str
    kind: str
    entries: tuple[ReportRun, ...]
    ranking: Ranking | None

    @property
    def lettered(self) -> tuple[ReportRun, ...]:
        """The runs that answered by letter."""
        return tuple(entry for entry in self.entries if entry.scores.answers)

    @property
    def unhindered(self) -> tuple[ReportRun, ...]:
        """The lettered runs that were shown all of each case; all of them, when none was."""
        return tuple(entry for entry in self.lettered if is_whole(entry.scores)) or self.lettered

    @property
    def n_cases(self) -> int:
        """How many cases every run of the group is about."""
        return len(self.entries[0].material.cases)

    @property
    def partial(self) -> PartialRun | None:
        """Done of due cases, if the runs of the group are unfinished."""
        return self.entries[0].scores.partial

    @property
    def cases_text(self) -> str:
        """How many cases, in words."""
        return str(self.partial) if self.partial else count_of(self.n_cases, "case")

    @property
    def title(self) -> str:
        """The group in a few words."""
        return f"{self.kind.capitalize()} runs on {self.benchmark}, {self.split} split, {self.cases_text}"

    def ranked(self) -> Iterator[tuple[ReportRun, RankedRun]]:
        """Every ranked run with its rank, best first."""
        for one in self.ranking.runs if self.ranking else ():
            yield self.lettered[one.run], one


def answer_pairs(entries: Sequence[ReportRun]) -> Iterator[tuple[ReportRun, AnswerScores]]:
    """The runs that answered by letter, each with those scores."""
    for entry in entries:
        if entry.scores.answers is not None:
            yield entry, entry.scores.answers


def load_entries(paths: Sequence[Path], data: Path | None = None) -> list[ReportRun]:
    """Open and score runs and submission files; scores that are still valid are reused."""
    if not paths:
        raise UsageError("no run was given", remedy="name at least one run's folder")
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("a run was given twice", remedy="name every run once")
    names = run_names(paths)
    materials = load_all(paths, data)
    manifests = [
        replace(material.manifest, model=model_shown(material.manifest.model))
        if material.manifest
        else _submitted(name, material, data)
        for name, material in zip(names, materials, strict=True)
    ]
    scored = [cached_scores(path, material) for path, material in zip(paths, materials, strict=True)]
    # The name serves as the label until the run's group is known.
    return [ReportRun(*parts) for parts in zip(paths, names, names, manifests, materials, scored, strict=True)]


def group_entries(entries: Sequence[ReportRun]) -> list[ComparableGroup]:
    """The groups, largest first; runs of different cases, fingerprints or kinds are never in the same one."""
    grouped: dict[str, list[ReportRun]] = {}
    # A submission only knows the texts of its benchmark; it joins the runs made on the same texts.
    known = {
        one.scores.origin.text_fingerprint: one.scores.origin.fingerprint for one in entries if not one.is_submission
    }
    for entry in entries:
        grouped.setdefault(_group_key(entry, known), []).append(entry)
    groups = [_make_group(members) for members in _labelled(list(grouped.values()))]
    return sorted(groups, key=lambda group: (-len(group.entries), group.kind, group.benchmark))


def _group_key(entry: ReportRun, known: dict[str, str | None]) -> str:
    origin, kind = entry.scores.origin, comparable_kind(entry.scores)
    images = origin.fingerprint or known.get(origin.text_fingerprint)
    cases = [sorted(entry.material.cases), sorted(entry.material.due)]
    return digest_value([images, origin.text_fingerprint, kind, cases])


def _submitted(name: str, material: ScoringInput, data: Path | None) -> Manifest:
    split = next(iter(material.cases.values())).split if material.cases else ""
    return Manifest(
        benchmark=str(data or ""),
        fingerprint="",
        text_fingerprint=material.text_fingerprint,
        selection=Selection(split=split),
        task=SUBMISSION,
        model=Path(name).stem,
        condition=Condition(),
        condition_label="as submitted",
        prompts={},
        created_at="",
    )


def _labelled(groups: list[list[ReportRun]]) -> list[list[ReportRun]]:
    """The runs under labels unique within their group, with the name added if two groups share one."""
    plain = (run_labels([one.manifest for one in group], [one.name for one in group]) for group in groups)
    labels = [list(map(_marked, said, group)) for said, group in zip(plain, groups, strict=True)]
    counts = Counter(label for group in labels for label in group)
    return [
        [
            entry._replace(label=label if counts[label] == 1 else f"{label} ({clean(entry.name)})")
            for entry, label in zip(group, written, strict=True)
        ]
        for group, written in zip(groups, labels, strict=True)
    ]


def _marked(label: str, entry: ReportRun) -> str:
    """The label, marked in every table, figure and export if the run is unfinished."""
    return f"{label} [{entry.scores.partial}]" if entry.scores.partial else label


def _make_group(members: list[ReportRun]) -> ComparableGroup:
    # A run without letters has no accuracy: it comes last.
    ordered = sorted(members, key=lambda entry: (entry.accuracy is None, -(value_of(entry.accuracy) or 0), entry.label))
    lettered = [entry for entry in ordered if entry.scores.answers]
    origin = ordered[0].scores.origin
    return ComparableGroup(
        benchmark=ordered[0].manifest.benchmark_name,
        split=origin.split,
        kind=comparable_kind(ordered[0].scores),
        entries=tuple(ordered),
        ranking=_rank(lettered),
    )


def _rank(lettered: list[ReportRun]) -> Ranking | None:
    if len(lettered) < 2 or len(lettered[0].scores.cases) < 2:
        return None
    matrix = [[one.right for one in entry.scores.cases] for entry in lettered]
    return rank_together(matrix, [one.case for one in lettered[0].scores.cases])
