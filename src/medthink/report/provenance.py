"""How the runs were made: conditions, fingerprints, prompt versions, and the command to reproduce each."""

import shlex
from collections.abc import Iterator, Sequence

from medthink import __version__
from medthink.core.markup import Markup, fold_section, joined, tag
from medthink.report.runs import ReportRun
from medthink.runs.manifest import Manifest
from medthink.scoring.scores import SCORER_VERSION
from medthink.workflow.condition import FIELDS, Condition
from medthink.workflow.tasks import default_condition


def reproduction_command(manifest: Manifest, out: str) -> str:
    """The original `medthink run …`; paths and addresses are not part of a run, so only their names are given."""
    words = ["medthink", "run", manifest.benchmark_name if manifest.benchmark else "DATA", "--model", manifest.model]
    words += ["--task", manifest.task, *_selection_words(manifest)]
    words += condition_words(manifest.task, manifest.condition)
    for number in range(1, len(manifest.base_urls) + 1):
        words += ["--base-url", f"URL-{number}"]
    return shlex.join([*words, "--out", out])


def condition_words(task: str, condition: Condition) -> list[str]:
    """The flags that turn the task's default condition into this one."""
    default = default_condition(task)
    values = {field: getattr(condition, field.name) for field in FIELDS}
    differing = (field.words(value) for field, value in values.items() if value != getattr(default, field.name))
    return [word for words in differing for word in words]


def _selection_words(manifest: Manifest) -> list[str]:
    selection = manifest.selection
    words = [] if selection.split == "test" else ["--split", selection.split]
    if selection.limit is not None:
        words += ["--limit", str(selection.limit)]
    if selection.cases is not None:
        words += ["--cases", ",".join(map(str, selection.cases))]
    if selection.shard is not None:
        words += ["--shard", str(selection.shard)]
    return words


def provenance_markup(entries: Sequence[ReportRun]) -> Markup:
    """One fold per run."""
    return joined(_run_markup(entry) for entry in entries)


def _run_markup(entry: ReportRun) -> Markup:
    facts = _submission_facts(entry) if entry.is_submission else _facts(entry)
    pairs = [part for name, value in facts for part in (tag("dt", name), tag("dd", value))]
    command = Markup("")
    if not entry.is_submission:
        command = tag("pre", tag("code", reproduction_command(entry.manifest, entry.name)), tabindex=0)
    notes = tag("ul", *(tag("li", note) for note in entry.scores.notes)) if entry.scores.notes else Markup("")
    head = joined((tag("b", entry.label), tag("span", f" {entry.name}", class_="soft")))
    return fold_section(head, command, notes, tag("dl", *pairs), class_="run")


def _submission_facts(entry: ReportRun) -> Iterator[tuple[str, str]]:
    yield "File", entry.path.name
    yield "How it was made", "unknown: these predictions were made elsewhere"
    yield "Fingerprint of the benchmark's texts", entry.manifest.text_fingerprint
    yield "Split", entry.manifest.selection.split
    yield "Scored with", f"medthink {__version__}, scorer {SCORER_VERSION}"


def _facts(entry: ReportRun) -> Iterator[tuple[str, str]]:
    manifest, origin = entry.manifest, entry.scores.origin
    yield "Model", manifest.model
    yield "Reported by the provider as", ", ".join(origin.reported_models) or "–"
    yield "Task", manifest.task
    yield "Condition", manifest.label()
    yield "Condition's digest", manifest.condition.digest()
    yield "Benchmark's fingerprint", manifest.fingerprint
    yield "of its texts only", manifest.text_fingerprint
    yield "Split", manifest.selection.split
    if entry.scores.partial:
        yield "Partial", str(entry.scores.partial)
    for kind, version in manifest.prompts.items():
        yield f"Prompt “{kind}”, version", version
    yield "Begun", manifest.created_at
    if manifest.progress and manifest.progress.last_call_at:
        yield "Last call", manifest.progress.last_call_at
    yield "Made with", f"medthink {manifest.package}"
    yield "Scored with", f"medthink {__version__}, scorer {SCORER_VERSION}"
