"""Matrix of cases and runs: right and wrong answers, with links to the cases shown below."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from medthink.cases.case import Case
from medthink.cases.notebook import thumbnail
from medthink.core.markup import Markup, fold_section, joined, paragraphs, tag
from medthink.core.numbers import count_of
from medthink.report.runs import ComparableGroup, ReportRun
from medthink.report.summary import name_some
from medthink.workflow.prediction import Prediction

_MEANING = (
    "A column is a case, the hardest on the left; a row is a run, the best on top. Filled: wrong or no letter; half: "
    "some samples wrong; empty: right. Cases that can be opened below have a mark under their column."
)
_ROW, _LEAST_WIDTH, _MOST_WIDTH, _FULL = 16, 1.2, 28.0, 960.0
MOST_ROWS = 40


class _Grid(NamedTuple):
    cases: tuple[int, ...]
    width: float


def order_by_difficulty(group: ComparableGroup) -> list[int]:
    """The cases, those that most runs missed first."""
    right = {one.case: 0.0 for one in group.lettered[0].scores.cases}
    for entry in group.lettered:
        for one in entry.scores.cases:
            right[one.case] += one.right
    return sorted(right, key=lambda case: (right[case], case))


def case_matrix_markup(group: ComparableGroup, shown: Sequence[int], prefix: str) -> Markup:
    """The matrix of a group; `shown` are the cases that can be opened on the page."""
    cases = order_by_difficulty(group)
    grid = _Grid(tuple(cases), max(_LEAST_WIDTH, min(_MOST_WIDTH, _FULL / len(cases))))
    entries = group.lettered[:MOST_ROWS]
    width, height = round(grid.width * len(cases), 1), _ROW * len(entries)
    rows = (_row(entry.label, {one.case: one.right for one in entry.scores.cases}, place, grid)
            for place, entry in enumerate(entries))  # fmt: skip
    links = (_link(grid, cases.index(case), case, height, prefix) for case in shown)
    svg = Markup(
        f'<svg class="matrix" viewBox="0 0 {width} {height + 10}" width="{width}" height="{height + 10}" role="img" '
        f'aria-label="Right and wrong by case and run">{joined(rows)}{joined(links)}</svg>'
    )
    names = tag("ol", *(tag("li", entry.label) for entry in entries), class_="matrix-names")
    box = tag("div", svg, class_="box matrix-box", role="region", aria_label="Cases by runs", tabindex=0)
    more = len(group.lettered) - len(entries)
    note = f"{_MEANING} The {more} lowest runs are not drawn." if more else _MEANING
    return tag("div", tag("div", names, box, class_="matrix-row"), tag("p", note, class_="soft small"))


def _row(label: str, right: dict[int, float], place: int, grid: _Grid) -> Markup:
    """All wrong cells of a run as one path, and those half wrong as another: thousands of cells in a few bytes each."""
    top, size = place * _ROW + 1, _ROW - 2
    whole = [number for number, case in enumerate(grid.cases) if right[case] == 0]
    half = [number for number, case in enumerate(grid.cases) if 0 < right[case] < 1]
    parts = [
        Markup(f'<path class="{kind}" d="{"".join(_square(grid, number, top, size) for number in numbers)}"/>')
        for kind, numbers in (("wrong", whole), ("half", half))
        if numbers
    ]
    told = f"{label}: {len(whole)} wrong or without a letter, {len(half)} wrong in some samples"
    frame = Markup(
        f'<rect class="row" x="0" y="{top}" width="{round(grid.width * len(grid.cases), 1)}" height="{size}"/>'
    )
    return tag("g", tag("title", told), frame, *parts)


def _square(grid: _Grid, number: int, top: int, size: int) -> str:
    gap = 0.5 if grid.width > 4 else 0.0
    left, width = round(number * grid.width + gap, 1), round(grid.width - 2 * gap, 1)
    return f"M{left} {top}h{width}v{size}h-{width}z"


def _link(grid: _Grid, number: int, case: int, height: int, prefix: str) -> Markup:
    left, width = round(number * grid.width, 1), round(max(grid.width, 3), 1)
    cell = Markup(f'<rect x="{left}" y="0" width="{width}" height="{height + 9}" class="hit"/>')
    mark = Markup(f'<rect x="{left}" y="{height + 2}" width="{max(1.0, width - 1)}" height="5" class="open"/>')
    return tag("a", tag("title", f"Case {case}"), mark, cell, href=f"#{prefix}-case-{case}")


MOST_CASES = 32
MOST_DIVIDED, MOST_RIGHT = 8, 4
_MOST_BESIDE = 6
_MOST_IMAGES = 24
# Kinds of failure whose detail is only the server's address, which readers of the page do not need.
_ABOUT_A_PLACE = ("connection", "timeout")


class ShownCases(NamedTuple):
    """The cases of a group that can be opened on the page, by kind; none is listed twice."""

    missed: tuple[int, ...]
    divided: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        """All of them."""
        return (*self.missed, *self.divided, *self.right)


def choose_cases(group: ComparableGroup, most: int) -> ShownCases:
    """The cases that most runs missed, then those on which the runs differ most, then some that none missed."""
    wrong = count_wrong(group.lettered)
    missed = sorted(wrong, key=lambda case: (-wrong[case], case))[:most]
    half = len(group.lettered) / 2
    flipped = (case for case in wrong if 0 < wrong[case] < len(group.lettered) and case not in set(missed))
    divided = sorted(flipped, key=lambda case: (abs(wrong[case] - half), case))[:MOST_DIVIDED]
    right = sorted(case for case in group.lettered[0].material.cases if case not in wrong)[:MOST_RIGHT]
    return ShownCases(tuple(missed), tuple(divided), tuple(right))


def other_cases_markup(group: ComparableGroup, shown: ShownCases, prefix: str) -> Iterator[Markup]:
    """The cases on which the runs differ most, and those that every run got right."""
    wrong = count_wrong(group.lettered)
    kinds = (("Cases on which the runs differ most", shown.divided), ("Right in every run", shown.right))
    for heading, numbers in kinds:
        if numbers:
            yield tag("h4", heading)
            yield _case_folds(group, numbers, wrong, prefix)


def wrong_cases_markup(group: ComparableGroup, most: int, prefix: str = "group-1") -> Markup:
    """The cases that some run missed, those that most runs missed first, with the number not shown."""
    entries = group.lettered
    wrong = count_wrong(entries)
    order = sorted(wrong, key=lambda case: (-wrong[case], case))
    intro = f"{count_of(len(order), 'case')} of {group.n_cases:,} got a wrong answer, or none, in at least one run"
    if len(order) > most:
        intro += f"; the {most} that most runs missed are shown, {len(order) - most:,} are not"
    return joined((tag("p", f"{intro}."), _case_folds(group, order[:most], wrong, prefix)))


def _case_folds(group: ComparableGroup, numbers: Sequence[int], wrong: Counter[int], prefix: str) -> Markup:
    cases = group.entries[0].material.cases
    # Nearly all the time is spent on pictures, which are decoded in parallel.
    with ThreadPoolExecutor() as pool:
        return joined(pool.map(lambda number: _case_markup(cases[number], group, wrong[number], prefix), numbers))


def count_wrong(entries: Sequence[ReportRun]) -> Counter[int]:
    """The number of runs that missed each case, by a wrong answer or none, in at least one sample."""
    wrong: Counter[int] = Counter()
    for entry in entries:
        wrong.update(one.case for one in entry.scores.cases if one.right < 1)
    return wrong


def _case_markup(case: Case, group: ComparableGroup, wrong: int, prefix: str) -> Markup:
    entries = group.lettered
    said = {entry.label: [one for one in entry.material.predictions if one.case == case.id] for entry in entries}
    missed = [entry for entry in entries if not all(_is_right(one, case) for one in said[entry.label])]
    share = "" if len(entries) == 1 else f" · missed by {wrong} of {len(entries)} runs"
    head = joined((tag("b", case.title), tag("span", f"{share} · {case.reference.answer_text}", class_="soft")))
    return tag(
        "details",
        tag("summary", head),
        tag("h4", "Clinical history"),
        paragraphs(case.question.history),
        tag("h4", f"Images, and the expert's captions{' that no model saw' if group.kind == 'unaided' else ''}"),
        _pictures(case),
        tag("h4", "Options"),
        _options(case, said),
        fold_section("Reference: imaging findings and discussion", *_reference(case), class_="inner"),
        *_outputs(entries, said, case),
        *(_steps_markup(entry, said[entry.label], case) for entry in missed),
        class_="case",
        id=f"{prefix}-case-{case.id}",
    )


def _is_right(one: Prediction, case: Case) -> bool:
    return one.state == "ok" and one.prediction == case.reference.answer


def _pictures(case: Case) -> Markup:
    slots = list(zip(case.question.images, case.reference.images, strict=True))
    shown = [
        tag(
            "figure",
            thumbnail(image, f"Image {image.slot}"),
            tag("figcaption", tag("b", f"Image {image.slot}"), " ", known.caption),
        )
        for image, known in slots[:_MOST_IMAGES]
    ]
    rest = len(slots) - len(shown)
    more = tag("p", f"{count_of(rest, 'more image')} not shown.", class_="soft") if rest else Markup("")
    return joined((tag("div", *shown, class_="pictures"), more))


def _options(case: Case, said: dict[str, list[Prediction]]) -> Markup:
    lines = []
    for letter, text in case.question.options.items():
        is_right = letter == case.reference.answer
        chose = [label for label, found in said.items() if any(one.prediction == letter for one in found)]
        kind = "right" if is_right else "chosen" if chose else None
        mark = "✓ " if is_right else "✗ " if chose else ""
        told = ["right answer"] * is_right + ([f"chosen by {name_some(chose)}"] if chose else [])
        who = mark + " · ".join(told)
        lines.append(tag("li", tag("b", letter), tag("span", text), tag("span", who, class_="who"), class_=kind))
    silent = [label for label, found in said.items() if any(one.prediction is None for one in found)]
    note = tag("p", f"No letter from {name_some(silent)}.", class_="soft") if silent else Markup("")
    return joined((tag("ol", *lines, class_="options"), note))


def _reference(case: Case) -> Iterator[Markup]:
    yield tag("h5", "Imaging findings")
    yield paragraphs(case.reference.findings)
    yield tag("h5", "Discussion")
    yield paragraphs(case.reference.discussion)


def _steps_markup(entry: ReportRun, said: list[Prediction], case: Case) -> Markup:
    """The run's text, step by step, next to the expert's; of several samples, the first wrong one."""
    one = next(prediction for prediction in said if not _is_right(prediction, case))
    letters = ", ".join(prediction.prediction or prediction.state for prediction in said)
    head = joined((tag("span", entry.label), tag("span", f" said {letters}", class_="soft")))
    return fold_section(head, *_beside(entry, one, case), class_="inner")


def _beside(entry: ReportRun, one: Prediction, case: Case) -> Iterator[Markup]:
    if one.state != "ok":
        reason = _reason(one)
        yield tag("p", tag("b", one.state), f": {reason}" if reason else "", class_="state")
    rows = list(_rows(entry, one, case))
    if rows:
        yield _two_columns(rows)
    elif one.state == "ok":
        yield tag("p", "The run gave a letter without a text.", class_="soft")


def _rows(entry: ReportRun, one: Prediction, case: Case) -> Iterator[tuple[str, str, str]]:
    """Each text of a prediction: the step, the model's text, the expert's text."""
    steps = one.prediction_twi
    is_own = not entry.manifest.condition.swap_images
    if steps and steps.step1_per_image_findings:
        yield from _finding_rows(one, steps.step1_per_image_findings, case, is_own=is_own)
    if steps and steps.step2_integrated_summary is not None:
        yield "Step 2: summary", steps.step2_integrated_summary, case.reference.findings
    why = (steps and steps.step3_differential_reasoning) or one.prediction_rationale
    if why:
        name = "Step 3: differential" if steps else "Reasoning"
        yield name, why, f"{case.reference.answer}: {case.reference.answer_text}"
    for text in entry.material.texts:
        if text.name in (one.texts or {}):
            yield from ((text.title, pair.candidate, pair.reference) for pair in text.pairs(one, case))


def _outputs(entries: Sequence[ReportRun], said: dict[str, list[Prediction]], case: Case) -> Iterator[Markup]:
    """The runs' texts side by side with the expert's; only the best of many runs."""
    some = entries[:_MOST_BESIDE]
    if len(entries) < 2:
        return
    written = (_rows(entry, said[entry.label][0], case) for entry in some)
    columns = [{name: (model, reference) for name, model, reference in rows} for rows in written]
    names = list(dict.fromkeys(name for rows in columns for name in rows))
    if not names:
        return
    labels = (tag("th", entry.label, _letter_mark(said[entry.label][0], case), scope="col") for entry in some)
    head = tag("tr", tag("th", "", scope="col"), tag("th", "Expert", scope="col"), *labels)
    rows = (
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", paragraphs(next((rows[name][1] for rows in columns if name in rows), ""))),
            *(tag("td", paragraphs(rows[name][0] if name in rows else "")) for rows in columns),
        )
        for name in names
    )
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="outputs")
    rest = len(entries) - len(some)
    note = tag("p", f"{count_of(rest, 'more run')} not shown here.", class_="soft small") if rest else Markup("")
    box = tag("div", table, class_="box", role="region", aria_label="Outputs side by side", tabindex=0)
    yield fold_section("What the runs wrote, side by side", box, note, class_="inner")


def _letter_mark(one: Prediction, case: Case) -> Markup:
    if one.state != "ok":
        return tag("span", f" {one.state}", class_="letter-mark")
    mark, kind = ("✓", "good") if _is_right(one, case) else ("✗", "bad")
    return tag("span", f" {one.prediction} {mark}", class_=f"letter-mark {kind}")


def _reason(one: Prediction) -> str:
    kind = one.detail.partition(":")[0]
    return kind if one.state == "failed" and kind in _ABOUT_A_PLACE else one.detail


def _finding_rows(
    one: Prediction, written: Sequence[str | None], case: Case, *, is_own: bool
) -> Iterator[tuple[str, str, str]]:
    captions = {
        image.slot: known.caption for image, known in zip(case.question.images, case.reference.images, strict=True)
    }
    for place, text in enumerate(written):
        slot = one.slots[place] if place < len(one.slots) else None
        beside = captions.get(slot, "") if slot is not None and is_own else ""
        name = f"Step 1: image {slot}" if slot is not None else "Step 1: no such image"
        yield name if is_own else f"{name} of another case", text or "", beside


def _two_columns(rows: Sequence[tuple[str, str, str]]) -> Markup:
    cells = [
        tag(
            "div",
            tag("h5", name),
            tag("div", tag("span", "Model", class_="side"), paragraphs(model)),
            tag("div", tag("span", "Reference", class_="side"), paragraphs(reference)),
            class_="pair",
        )
        for name, model, reference in rows
    ]
    return tag("div", *cells, class_="pairs")
