"""Raw teaching cases of phantoms for `medthink curate`: a table, image files, a plan, and faults of every kind.

Cases are as in a teaching file: a history, a discussion, and the differential diagnosis as one string. Some of them
have one fault each, listed in `planted.json` with the stage that must notice it and what it must report.
"""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.core.files import new_folder
from medthink.core.jsonio import write_json
from medthink.phantoms.atlas import families
from medthink.phantoms.expert_texts import write_caption, write_discussion, write_findings, write_history
from medthink.phantoms.plan import CasePlan, plan_raw_case

Row = dict[str, str]
MOST_IMAGES = 3
# As many as all faults need, three times over, among as many sound cases; guessers learn from the rest.
FEWEST_RAW = 180
_COLUMNS = ("id", "clinical_history", "imaging_findings", "discussion", "final_diagnosis", "differential_diagnosis")
_MORE = ("link", "licence", "images", *(f"image{n}_caption" for n in range(1, MOST_IMAGES + 1)))
_MODALITY = tuple(f"image{n}_modality" for n in range(1, MOST_IMAGES + 1))
_TAILS = ("with typical imaging features", "in a young patient", "with a benign course")
PLAN = """# Rules and embedded models only: no key, no network. docs/curate.md explains every line.
work = "work"
seed = {seed}

[ingest]
source = "cases.csv"

[aliases]

[options]

[leaks]

[balance]

[textonly]
min_solved = 1
repeats = 2

[icd]

[timeline]

[modality]
unknown = "hold"

[discussion]

[split]

[export]
title = "A benchmark of phantoms"
"""


class RawFault(NamedTuple):
    """A fault, the stage that must notice it, what it must decide and why; "" if the case passes."""

    name: str
    stage: str
    verdict: str
    reason: str
    plant: "Plant"


class PlantedFault(NamedTuple):
    """Where a fault was planted."""

    case: int
    name: str
    stage: str
    verdict: str
    reason: str


def write_raw(
    out: Path, *, cases: int, seed: int, faults: bool = True, paint: bool = True,
    progress: Callable[[int], None] | None = None,
) -> list[PlantedFault]:  # fmt: skip
    """Write raw cases into a new folder; returns what was planted."""
    if cases < (FEWEST_RAW if faults else 1):
        raise UsageError(f"cannot plant every fault in {cases} cases", remedy=f"ask for at least {FEWEST_RAW}")
    planted, rows = [], list[Row]()
    with new_folder(out.resolve()) as folder:
        for number in range(1, cases + 1):
            fault = _fault_of(number) if faults else None
            rows.append(_make_row(folder, seed, number, fault, paint=paint))
            if fault is TWIN:
                rows[-1] = rows[-2] | {"id": rows[-1]["id"]}
            if fault is not None:
                planted.append(PlantedFault(number, fault.name, fault.stage, fault.verdict, fault.reason))
            if progress is not None:
                progress(number)
        _write_table(folder / "cases.csv", rows)
        write_json(folder / "planted.json", [one._asdict() for one in planted])
        (folder / "plan.toml").write_text(PLAN.format(seed=seed), encoding="utf-8")
    return planted


def _fault_of(number: int) -> RawFault | None:
    """Every kind three times among as many sound cases; later a word that gives the answer away, every fourth case."""
    place, is_odd = divmod(number, 2)
    if place <= 3 * len(FAULTS):
        return None if is_odd or place == 0 else FAULTS[(place - 1) % len(FAULTS)]
    return TELLING_WORD if number % 4 == 0 else None


def make_raw_row(seed: int, number: int) -> tuple[Row, CasePlan]:
    """A sound raw case without its pictures, and its plan."""
    chance = Random(seed_from("raw words", seed, number))
    plan = plan_raw_case(seed, number, options=chance.choice((5, 5, 5, 6, 7)), images=chance.choice((2, 2, 3)))
    row = dict.fromkeys((*_COLUMNS, *_MORE, *_MODALITY), "") | {
        "id": str(number),
        "clinical_history": write_history(chance, families()[plan.family]),
        "imaging_findings": write_findings(chance, plan),
        "discussion": write_discussion(chance, plan),
        "final_diagnosis": plan.disease.name,
        "differential_diagnosis": ", ".join(disease.name for disease in plan.options),
        "link": f"https://example.org/case/{number}",
        "licence": "CC0-1.0",
    }
    for slot, shot in enumerate(plan.shots, start=1):
        row[f"image{slot}_caption"] = write_caption(chance, plan, shot)
        row[f"image{slot}_modality"] = shot.view.modality
    return row, plan


def _make_row(folder: Path, seed: int, number: int, fault: RawFault | None, *, paint: bool) -> Row:
    row, plan = make_raw_row(seed, number)
    if paint:
        row["images"] = "; ".join(_paint(folder, seed, plan))
    chance = Random(seed_from("fault", seed, number))
    if fault is None and chance.random() < _LONG_SHARE:
        row = _lengthen(row, plan, chance)
    return row if fault is None else fault.plant(row, plan, chance)


_LONG_SHARE = 0.4


def _paint(folder: Path, seed: int, plan: CasePlan) -> list[str]:
    from medthink.phantoms.painters import paint_jpeg
    from medthink.phantoms.painters.scene import ImageSpec

    side = 1 if plan.side == "left" else -1
    names = []
    for slot, shot in enumerate(plan.shots, start=1):
        name = f"pictures/{plan.number}/{slot}.jpg"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        data = paint_jpeg(
            shot.view.painter, ImageSpec(shot.sign, side, shot.size), seed_from("raw", seed, plan.number, slot)
        )
        (folder / name).write_bytes(data)
        names.append(name)
    return names


def _write_table(path: Path, rows: list[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def _rename(row: Row, plan: CasePlan, name: str) -> Row:
    """The row with another wording of the right diagnosis, in the list, too."""
    listed = [name if disease is plan.disease else disease.name for disease in plan.options]
    return row | {"final_diagnosis": name, "differential_diagnosis": ", ".join(listed)}


def _lengthen(row: Row, plan: CasePlan, chance: Random) -> Row:
    """As experts do, say more of the right diagnosis than of the others."""
    return _rename(row, plan, f"{plan.disease.name} {chance.choice(_TAILS)}")


Plant = Callable[[Row, CasePlan, Random], Row]


def _set(**values: str) -> Plant:
    """The row with other values; `{name}` in them is the right diagnosis, `{old}` the text it replaces."""

    def plant(row: Row, plan: CasePlan, chance: Random) -> Row:  # noqa: ARG001
        name = plan.disease.name
        return row | {column: value.format(name=name, old=row[column]) for column, value in values.items()}

    return plant


def _call(wording: str) -> Plant:
    """Another wording of the right diagnosis, in the list as well."""

    def plant(row: Row, plan: CasePlan, chance: Random) -> Row:  # noqa: ARG001
        name = plan.disease.name
        return _rename(row, plan, wording.format(name=name, low=name[0].lower() + name[1:]))

    return plant


def _tell(sentence: str, form: Callable[[str, Random], str] | None = None) -> Plant:
    """A sentence about the right diagnosis at the end of the history."""

    def plant(row: Row, plan: CasePlan, chance: Random) -> Row:
        name = plan.disease.name if form is None else form(plan.disease.name, chance)
        return row | {"clinical_history": f"{row['clinical_history']} {sentence.format(name)}"}

    return plant


def _list(wanted: Callable[[list[str], str], list[str]]) -> Plant:
    """Another list of differential diagnoses, from the distractors and the right name."""

    def plant(row: Row, plan: CasePlan, chance: Random) -> Row:  # noqa: ARG001
        others = [disease.name for disease in plan.options if disease is not plan.disease]
        return row | {"differential_diagnosis": ", ".join(wanted(others, plan.disease.name))}

    return plant


def _parent(row: Row, plan: CasePlan, chance: Random) -> Row:  # noqa: ARG001
    """Three distractors, and a broader term that would be right as well."""
    others = [disease.name for disease in plan.options if disease is not plan.disease][:3]
    gold = f"Lobulated {plan.disease.name}"
    return row | {"final_diagnosis": gold, "differential_diagnosis": ", ".join([*others, plan.disease.name, gold])}


def _typo(name: str, chance: Random) -> str:
    inside = [place for place in range(2, len(name) - 2) if name[place : place + 2].isalpha()]
    place = chance.choice(inside)
    return name[:place] + name[place + 1] + name[place] + name[place + 2 :]


def _plural(name: str, chance: Random) -> str:  # noqa: ARG001
    for ending, instead in (("sis", "ses"), ("y", "ies"), ("a", "as"), ("s", "s")):
        if name.endswith(ending):
            return name[: -len(ending)] + instead
    return name + "s"


def _american(name: str, chance: Random) -> str:  # noqa: ARG001
    for old, new in (("aem", "em"), ("oed", "ed"), ("tumour", "tumor"), ("-", " ")):
        name = name.replace(old, new)
    return name.upper()


def _unsay_modality(caption: str) -> Plant:
    """No word on what the images are but this caption."""

    def plant(row: Row, plan: CasePlan, chance: Random) -> Row:  # noqa: ARG001
        captions = {f"image{slot}_caption": caption for slot in range(1, len(plan.shots) + 1)}
        return row | dict.fromkeys(_MODALITY, "") | captions

    return plant


_SURPLUS = ("Fantasia cyst", "Utopia granuloma", "Arcadia hamartoma")


def _discuss_surplus(row: Row, plan: CasePlan, chance: Random) -> Row:  # noqa: ARG001
    """More names than a case has options, all of them discussed."""
    passages = " ".join(f"{name} would be painful." for name in _SURPLUS)
    listed = ", ".join([row["differential_diagnosis"], *_SURPLUS])
    return row | {"differential_diagnosis": listed, "discussion": f"{row['discussion']}\n\n{passages}"}


_TWO = "Case 1: {old} Case 2: as above."
TELLING_WORD = RawFault(
    "a word that gives the answer away",
    "textonly",
    "out",
    "solved-without-looking",
    _call("Biopsy-proven {low}"),
)
TWIN = RawFault("a copy of the case before", "split", "changed", "", _set())
FAULTS = (
    RawFault("no history", "ingest", "out", "no-history", _set(clinical_history="")),
    RawFault("no diagnosis", "ingest", "out", "no-diagnosis", _set(final_diagnosis="")),
    RawFault("no image", "ingest", "out", "no-image", _set(images="")),
    RawFault("a missing image", "ingest", "undecided", "image-unreadable", _set(images="pictures/none.jpg")),
    RawFault("an image elsewhere", "ingest", "undecided", "image-unreadable", _set(images="../../secret.jpg")),
    RawFault("no licence", "ingest", "undecided", "no-licence", _set(licence="")),
    RawFault("two patients in one history", "ingest", "undecided", "several-patients", _set(clinical_history=_TWO)),
    RawFault("a citation mark in the name", "options", "changed", "resolved", _set(final_diagnosis="{old} [4,6]")),
    RawFault("a comma in the right name", "options", "changed", "resolved", _call("{name}, left lobe")),
    RawFault("the right name is missing", "options", "undecided", "gold-missing", _list(lambda others, _: others)),
    RawFault("too few names", "options", "out", "few-options", _list(lambda others, gold: [gold, *others[:2]])),
    RawFault("a broader term", "options", "out", "parent-of-gold", _parent),
    RawFault(
        "the right name over and over", "options", "out", "few-options",
        _list(lambda others, gold: [gold, gold.upper(), f"{gold}.", *others[:2]]),
    ),
    RawFault("the name in the history", "leaks", "out", "leak-L3", _tell("It was {}.")),
    RawFault("another spelling", "leaks", "out", "leak-L3", _tell("It was {}.", _american)),
    RawFault("the plural", "leaks", "out", "leak-L3", _tell("Such {} run in the family.", _plural)),
    RawFault("a misspelt name", "leaks", "out", "leak-L2", _tell("It was {}.", _typo)),
    RawFault("a suspicion", "leaks", "out", "leak-L1", _tell("The doctor suspected {}.")),
    RawFault("a denial", "leaks", "undecided", "leak-negated", _tell("There was no {}.")),
    RawFault("a date", "leaks", "undecided", "identifier", _tell("Seen on 12 March 2021.")),
    TELLING_WORD,
    RawFault("a name that ICD-10 has not", "icd", "changed", "uncoded", _call("Fantasia proliferation")),
    RawFault(
        "a second examination", "timeline", "changed", "several-times",
        _set(imaging_findings="{old} MRI was done as well. Follow-up MRI six months later showed no change."),
    ),
    RawFault("a modality in captions only", "modality", "changed", "labelled", _unsay_modality("Axial CT of a mass.")),
    RawFault("no word on the modality", "modality", "undecided", "modality-unknown", _unsay_modality("A mass.")),
    RawFault("passages on names left out", "discussion", "changed", "pruned", _discuss_surplus),
    TWIN,
)  # fmt: skip
