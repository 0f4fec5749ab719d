"""The cases that runs got wrong: pictures, options, and the model's steps beside the reference."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from medthink.cases.card import thumbnail
from medthink.cases.case import Case
from medthink.core.markup import Markup, fold, joined, paragraphs, tag
from medthink.report.entries import Entry, Group
from medthink.report.words import count_of, name_some
from medthink.runs.prediction import Prediction

MOST_CASES = 32
_MOST_IMAGES = 24
# Kinds of failure whose detail is the server's address, and nothing that a reader of the page needs.
_ABOUT_A_PLACE = ("connection", "timeout")


def wrong_cases_markup(group: Group, most: int) -> Markup:
    """The group's wrong cases, those that most runs got wrong first; says how many are not shown."""
    entries = group.lettered
    wrong = count_wrong(entries)
    order = sorted(wrong, key=lambda case: (-wrong[case], case))
    cases = entries[0].material.cases if entries else {}
    intro = f"{count_of(len(order), 'case')} of {group.n_cases:,} went wrong in at least one run"
    if len(order) > most:
        intro += f"; the {most} that went wrong in the most runs are shown, {len(order) - most:,} are not"
    # Nearly all the time goes into pictures, which decode side by side.
    with ThreadPoolExecutor() as pool:
        shown = pool.map(lambda number: _case_markup(cases[number], group, wrong[number]), order[:most])
        return joined((tag("p", f"{intro}."), *shown))


def count_wrong(entries: Sequence[Entry]) -> Counter[int]:
    """How many runs were wrong on each case, in one sample at least."""
    wrong: Counter[int] = Counter()
    for entry in entries:
        wrong.update(one.case for one in entry.scores.cases if one.right < 1)
    return wrong


def _case_markup(case: Case, group: Group, wrong: int) -> Markup:
    entries = group.lettered
    said = {entry.label: [one for one in entry.material.predictions if one.case == case.id] for entry in entries}
    missed = [entry for entry in entries if not all(_is_right(one, case) for one in said[entry.label])]
    share = "" if len(entries) == 1 else f" · wrong in {wrong} of {len(entries)} runs"
    head = joined((tag("b", case.title), tag("span", f"{share} · {case.reference.answer_text}", class_="soft")))
    return fold(
        head,
        tag("h4", "Clinical history"),
        paragraphs(case.question.history),
        tag("h4", f"Images, and the expert's captions{' that no model saw' if group.kind == 'unaided' else ''}"),
        _pictures(case),
        tag("h4", "Options"),
        _options(case, said),
        fold("Reference: imaging findings and discussion", *_reference(case), class_="inner"),
        *(_steps_markup(entry, said[entry.label], case) for entry in missed),
        class_="case",
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
        who = f"{mark}{'right answer' if is_right else ''}{' · ' if is_right and chose else ''}{_chosen_by(chose)}"
        lines.append(tag("li", tag("b", letter), tag("span", text), tag("span", who, class_="who"), class_=kind))
    silent = [label for label, found in said.items() if any(one.prediction is None for one in found)]
    note = tag("p", f"No letter from {name_some(silent)}.", class_="soft") if silent else Markup("")
    return joined((tag("ol", *lines, class_="options"), note))


def _chosen_by(labels: list[str]) -> str:
    return f"chosen by {name_some(labels)}" if labels else ""


def _reference(case: Case) -> Iterator[Markup]:
    yield tag("h5", "Imaging findings")
    yield paragraphs(case.reference.findings)
    yield tag("h5", "Discussion")
    yield paragraphs(case.reference.discussion)


def _steps_markup(entry: Entry, said: list[Prediction], case: Case) -> Markup:
    """What the run wrote, step by step, beside what the expert wrote; of several samples the first wrong one."""
    one = next(prediction for prediction in said if not _is_right(prediction, case))
    letters = ", ".join(prediction.prediction or prediction.state for prediction in said)
    head = joined((tag("span", entry.label), tag("span", f" said {letters}", class_="soft")))
    return fold(head, *_beside(entry, one, case), class_="inner")


def _beside(entry: Entry, one: Prediction, case: Case) -> Iterator[Markup]:
    if one.state != "ok":
        reason = _reason(one)
        yield tag("p", tag("b", one.state), f": {reason}" if reason else "", class_="state")
    rows: list[tuple[str, str, str]] = []
    steps = one.prediction_twi
    is_own = not entry.manifest.condition.swap_images
    if steps and steps.step1_per_image_findings:
        rows += _finding_rows(one, steps.step1_per_image_findings, case, is_own=is_own)
    if steps and steps.step2_integrated_summary is not None:
        rows.append(("Step 2: summary", steps.step2_integrated_summary, case.reference.findings))
    why = (steps and steps.step3_differential_reasoning) or one.prediction_rationale
    if why:
        name = "Step 3: differential" if steps else "Reasoning"
        rows.append((name, why, f"{case.reference.answer}: {case.reference.answer_text}"))
    if rows:
        yield _two_columns(rows)
    elif one.state == "ok":
        yield tag("p", "The run gave a letter and no words.", class_="soft")


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
