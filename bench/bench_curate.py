"""The bars of curation: what rules find and miss on real and drawn cases, what guessers find, and how it scales.

    python bench/bench_curate.py [sample] [plants] [guessers] [scale] [ocr]

Without words everything but `ocr` is measured. The sample of real cases is read from ../shared/data where it is there.
The planters are written apart from the detectors: they know nothing of the rules they test.
"""

import csv
import io
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from medthink.cases.case import Case
from medthink.core.numbers import as_rate
from medthink.curate.build import build
from medthink.curate.decision import read_decisions
from medthink.curate.draft import Draft, Notes, blank_draft, read_drafts
from medthink.curate.mentions import (
    SpelledText,
    TargetName,
    WordFrequency,
    options_of,
    strong_mentions,
    suspect_mentions,
)
from medthink.curate.names import known_aliases, split_differential
from medthink.curate.plan import WorkFolder, read_plan
from medthink.curate.stages.balance import answer_length_rank
from medthink.phantoms.raw_cases import make_raw_row, write_raw
from medthink.stats.intervals import wilson

SAMPLE = Path(__file__).parents[2] / "shared/data/eurorad_sample.csv"
STAGES = "[aliases]\n[options]\n[leaks]\nidentifiers = false\n[balance]\n[split]\ntest_share = 0.2\n"
# Each plain, with another name, and with its diagnosis at three sizes.
OCR_PICTURES, OCR_SIZES, LEAST_CONTRAST = 25, (10, 14, 20), 80
LABELS = "[icd]\n[timeline]\n[modality]\n[discussion]\n"
MAPPING = """[columns]
id = "case_id"
diagnosis = "FinalDiagnosis"
differential = "DifferentialDiagnosisList"
section = "Section"
[headings.PostDescription]
history = "Clinical History:"
findings = "Imaging Findings:"
"""


def main() -> None:
    """Print every bar that was asked for."""
    wanted = sys.argv[1:] or ["sample", "plants", "guessers", "scale"]
    for name in wanted:
        print(f"\n{name}")
        BARS[name]()


def bar(what: str, value: str, is_met: bool, aim: str) -> None:
    """One line: what was measured, the figure, the aim, and whether it is met."""
    print(f"  {'ok  ' if is_met else 'MISS'} {what}: {value}  (aim: {aim})")


# --- the sample of real cases ---------------------------------------------------------------------------------------


def measure_sample() -> None:
    """Golds, leaks, ranks and letters on 70 real cases."""
    if not SAMPLE.exists():
        print("  the sample of real cases is not here")
        return
    with tempfile.TemporaryDirectory() as folder:
        work = run_plan(Path(folder), f'source = "{SAMPLE}"\nmapping = "map.toml"\nmin_images = 0\nlicence = "x"\n')
        logs = {name: list(read_decisions(work.decision_file(name))) for name in ("ingest", "options", "leaks")}
        dealt = list(read_drafts(work.case_file("balance")))
        final = list(read_drafts(work.case_file("split")))
    golds = {case: gold for case, _, gold, _ in real_cases()}
    # One of the 70 tells of two patients and waits at `ingest`: its gold is resolved here by itself.
    held = [one.case for one in logs["ingest"] if one.verdict == "undecided"]
    found = [one for one in logs["options"] if one.by == "rule exact" and one.evidence]
    wrong = [one.case for one in found if one.evidence[0].text != golds[one.case]]
    resolved = len(found) + sum(golds[case] in dict(real_lists())[case] for case in held)
    bar("golds resolved", f"{resolved} of 70, wrong {len(wrong)}", resolved == 70 and not wrong, "70 of 70, wrong 0")
    five = sum(one.verdict == "changed" for one in logs["options"])
    strong, suspects = count_alarms()
    bar("strong leak alarms", f"{strong} of 70", strong <= 1, "≤ 1")
    bar("suspects", f"{suspects} of 70 ({100 * suspects / 70:.1f} %)", suspects <= 7, "≤ 10 %")
    alone = balanced_alone()
    ranks = Counter(map(answer_length_rank, alone))
    worst = max(ranks.values()) / len(alone)
    text = (
        f"{len(alone)} of 43 kept, ranks {'/'.join(str(ranks[rank]) for rank in range(5))}, largest {100 * worst:.1f} %"
    )
    bar("length ranks", text, worst <= 0.23 and len(alone) >= 30, "each ≤ 23 %, ≥ 30 of 43 kept")
    for name, drafts in (("after balance", alone), ("at the end of the plan", final)):
        letters = Counter(one.case.reference.answer for one in drafts)
        spread = max(letters.values()) - min(letters[letter] for letter in "ABCDE")
        bar(f"letters {name}", f"differ by {spread}", spread <= 1, "≤ 1")
    print(f"       the whole plan: 70 → {five} with five options → {len(dealt)} balanced → {len(final)} in splits")


def run_plan(folder: Path, ingest: str, stages: str = STAGES) -> WorkFolder:
    """Build by a plan in this folder."""
    (folder / "map.toml").write_text(MAPPING, encoding="utf-8")
    plan = folder / "plan.toml"
    plan.write_text(f'work = "work"\nseed = 7\n[ingest]\n{ingest}{stages}', encoding="utf-8")
    end = build(read_plan(plan))
    if end.stopped_by is not None:
        raise end.stopped_by
    return WorkFolder(folder / "work")


def real_rows() -> list[dict[str, str]]:
    """The sample as it is."""
    with SAMPLE.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def real_cases() -> list[tuple[int, str, str, list[str]]]:
    """Number, history, diagnosis and options of every real case."""
    found = []
    for row in real_rows():
        history = row["PostDescription"].partition("Imaging Findings:")[0].removeprefix("Clinical History:").strip()
        gold = row["FinalDiagnosis"]
        options = split_differential(row["DifferentialDiagnosisList"], gold)
        found.append((int(float(row["case_id"])), history, gold, options))
    return found


def real_lists() -> list[tuple[int, list[str]]]:
    """The options of every real case by its number."""
    return [(case, options) for case, _, _, options in real_cases()]


def count_alarms() -> tuple[int, int]:
    """Strong alarms and suspects among all real histories."""
    frequency, targets = sought(real_cases())
    strong = suspects = 0
    for _, history, target, _, _ in targets:
        text = SpelledText(history)
        found = strong_mentions(text, target)
        strong += bool(found)
        suspects += not found and bool(suspect_mentions(text, target, frequency))
    return strong, suspects


def balanced_alone() -> list[Draft]:
    """The 43 lists of five and more, balanced by themselves."""
    drafts = []
    for case, _, gold, options in real_cases():
        if len(options) >= 5:
            made = blank_draft(case, Notes(diagnosis=gold, candidates=(gold, *options_of(options, gold))))
            drafts.append(made.with_reference(answer_text=gold))
    with tempfile.TemporaryDirectory() as folder:
        from medthink.core.jsonio import write_jsonl
        from medthink.curate.build import open_stage, run_stage
        from medthink.curate.rulings import Rulings
        from medthink.curate.settings import read_stage_settings

        work = WorkFolder(Path(folder))
        write_jsonl(work.cases / "given.jsonl", (one.row() for one in drafts))
        source = work.cases / "given.jsonl"
        stage = open_stage(
            "balance", read_stage_settings("balance", {}), work=work, source=source, plan_folder=work.path, seed=7
        )
        run_stage(stage, work, Rulings())
        return list(read_drafts(work.case_file("balance")))


# --- planted leaks ---------------------------------------------------------------------------------------------------

# Forms that people use, by the number of the real case, written by hand. Some acronyms and eponyms stand in the rules'
# own table, too: for names that do not, the figure is lower.
FOREIGN_FORMS = "foreign forms, with suspects"
FOREIGN = {
    18821: "Moyamoya-Erkrankung", 18828: "maladie de Whipple", 18839: "Dirofilariose", 18867: "tumeur brune",
    18870: "Kalzinose", 18872: "Boerhaave-Syndrom", 18876: "extrapleurales Hämatom",
    18894: "paroxysmale nächtliche Hämoglobinurie", 18899: "Pyometrokolpos", 18925: "myoides Hamartom",
    18943: "Herpes-simplex-Enzephalitis", 18957: "Melorheostose", 18964: "leiomioma esofágico",
    18966: "osteocondroma de la escápula", 18969: "Enchondrom", 18977: "lipome parostéal",
    19000: "micetoma del seno esfenoidal", 19001: "Burkitt-Lymphom", 19002: "Ganglioneuroblastom",
    19015: "Amyloidose der Lunge", 19027: "linite plastique", 19028: "Splenose der Leber",
    19040: "hyperostose corticale infantile", 19050: "tuberculosis mamaria", 19067: "Lungentuberkulose",
    19098: "neurofibrome plexiforme", 19115: "Hibernom", 19123: "hereditäre hämorrhagische Teleangiektasie",
    19133: "Appendizitis des Stumpfes", 19134: "xanthogranulomatöse Pyelonephritis", 19141: "Meningeom, anaplastisch",
    19144: "hemangioma intramuscular", 19152: "emphysematöse Hepatitis", 19154: "Fibrodysplasie",
    19160: "Lipoidproteinose", 19162: "tuberculome cérébelleux",
}  # fmt: skip
ACRONYMS = {
    18853: "CPPD", 18865: "NF1", 18894: "PNH", 18906: "CAPNON", 18920: "ARSACS", 18925: "MHB", 18943: "HSE",
    18961: "LPAC", 19123: "HHT", 19134: "XGP", 19154: "FOP", 19089: "SEA", 18855: "MVP", 18849: "HAGL lesion",
}  # fmt: skip
EPONYMS = {
    18828: "Whipple", 18833: "Jarcho-Levin", 18872: "Boerhaave", 18904: "Morel Lavallee", 19001: "Burkitt's",
    19040: "Caffey", 19061: "Müller-Weiss", 19123: "Osler-Weber-Rendu", 19160: "Urbach-Wiethe",
    18894: "Marchiafava-Micheli", 19154: "Münchmeyer", 18865: "von Recklinghausen", 18957: "Leri",
}  # fmt: skip


def sought(cases):
    """How frequent words are, and for each case its history, what is sought, and its names."""
    frequency, targets = WordFrequency(), []
    for case, history, gold, options in cases:
        frequency.add(SpelledText(history))
        target = TargetName.of(gold, aliases=known_aliases(gold), others=options_of(options, gold))
        targets.append((case, history, target, gold, options))
    return frequency, targets


def drawn_cases(count: int):
    """Number, history, diagnosis and options of drawn cases."""
    for number in range(1, count + 1):
        row, plan = make_raw_row(11, number)
        names = [disease.name for disease in plan.options]
        yield number, row["clinical_history"], plan.disease.name, names


def measure_plants() -> None:
    """Recall of every class of planted leaks, and what distractors set off."""
    for name, cases in (("real", real_cases() if SAMPLE.exists() else []), ("drawn", list(drawn_cases(400)))):
        if cases:
            measure_plants_in(name, cases)


def measure_plants_in(name: str, cases) -> None:
    """One set of cases."""
    frequency, targets = sought(cases)
    chance = random.Random(3)
    writers = {
        "exact": (0.99, lambda gold: gold),
        "normalised": (0.99, respell),
        "plural": (0.99, plural),
        "one typo": (0.97, lambda gold: typo(gold, chance)),
        "word order": (0.95, turn),
    }
    plants = {
        kind: (aim, [(one, form) for one in targets if (form := write(one[3]))])
        for kind, (aim, write) in writers.items()
    }
    if name == "real":
        known = [(one, forms[one[0]]) for forms in (ACRONYMS, EPONYMS) for one in targets if one[0] in forms]
        plants["real acronyms and eponyms"] = (0.80, known)
        plants[FOREIGN_FORMS] = (0.80, [(one, FOREIGN[one[0]]) for one in targets if one[0] in FOREIGN])
    for kind, (aim, planted) in plants.items():
        hits = 0
        for (_, history, target, _, _), form in planted:
            text = SpelledText(insert(history, form, chance))
            suspects = suspect_mentions(text, target, frequency) if kind == FOREIGN_FORMS else []
            hits += bool(strong_mentions(text, target) or suspects)
        share = hits / len(planted)
        bar(f"{name} cases, {kind}", f"{share:.3f} of {len(planted)}", share >= aim, f"≥ {aim}")
    alarms = total = 0
    for _, history, target, gold, options in targets:
        for other in options_of(options, gold):
            total += 1
            alarms += bool(strong_mentions(SpelledText(insert(history, other, chance)), target))
    bar(f"{name} cases, gold alarm by a distractor", f"{alarms} of {total}", alarms <= 0.03 * total, "≤ 3 %")


def insert(history: str, form: str, chance: random.Random) -> str:
    """The history with a sentence that holds the form, somewhere."""
    sentences = re.split(r"(?<=\.) ", history.strip())
    sentences.insert(chance.randrange(len(sentences) + 1), f"The referral letter mentioned {form}.")
    return " ".join(sentences)


def respell(name: str) -> str:
    """Capitals, no hyphens, American, no possessive."""
    name = name.upper().replace("-", " ").replace("’S", "")
    return name.replace("OESO", "ESO").replace("HAEM", "HEM").replace("TUMOUR", "TUMOR").replace("OEDEMA", "EDEMA")


def plural(name: str) -> str | None:
    """The plural of a plain name."""
    if re.search(r"\(| with | in | of | and ", name) or name.endswith("us"):
        return None
    for ending, instead in (("is", "es"), ("oma", "omata"), ("y", "ies"), ("s", None)):
        if name.endswith(ending):
            return None if instead is None else name[: -len(ending)] + instead
    return name + "s"


def typo(name: str, chance: random.Random) -> str:
    """A letter lost, doubled or swapped with the next, inside a long word."""
    start, end = chance.choice([match.span() for match in re.finditer(r"[^\W\d_]{5,}", name)] or [(0, len(name))])
    place = chance.randrange(start + 1, max(start + 2, end - 1))
    changed = (name[place + 1] + name[place] + name[place + 2 :], name[place + 1 :], name[place] + name[place:])
    return name[:place] + chance.choice(changed)


def turn(name: str) -> str | None:
    """ "Renal lymphoma" as "lymphoma of the renal"; only plain names of two or three words."""
    words = re.sub(r"\s*\([^)]*\)", "", name).split()
    if not 2 <= len(words) <= 3 or {"of", "the", "in", "with", "and"} & set(words):
        return None
    return f"{words[-1].lower()} of the {' '.join(words[:-1]).lower()}"


# --- guessers on a built benchmark -----------------------------------------------------------------------------------


def measure_guessers() -> None:
    """Guessers that see options only, on a benchmark built from drawn cases whose golds are often the longest."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw"
        write_raw(raw, cases=1200, seed=5, faults=False, paint=False)
        before = [one for one in map(as_case, csv.DictReader(io.StringIO((raw / "cases.csv").read_text()))) if one]
        ingest = 'source = "raw/cases.csv"\nmin_images = 0\n'
        stages = STAGES.replace("[split]", "[textonly]\nmin_solved = 1\nrepeats = 1\n[split]")
        work = run_plan(Path(folder), ingest, stages)
        built = [one.case for one in read_drafts(work.case_file("split"))]
    print(f"       {len(before)} raw lists cut to five at random, {len(built)} cases built")
    for name, guess in (("logistic", logistic), ("TF-IDF", tfidf), ("boosting", boosting)):
        raw_rate, rate = rate_of(guess, before), rate_of(guess, built)
        is_met = rate.low <= 0.2 <= rate.high
        text = f"{as_rate(rate.value, rate.low, rate.high)}; raw {as_rate(raw_rate.value, raw_rate.low, raw_rate.high)}"
        bar(f"{name} guesser on options", text, is_met, "interval contains 20 %")


def as_case(row: dict[str, str]) -> Case | None:
    """A raw row as a case of five options chosen at random, the careless way."""
    chance = random.Random(row["id"])
    gold = row["final_diagnosis"]
    others = options_of(split_differential(row["differential_diagnosis"], gold), gold)
    if len(others) < 4:
        return None
    names = [gold, *chance.sample(others, 4)]
    chance.shuffle(names)
    draft = blank_draft(int(row["id"]), Notes()).with_question(options=dict(zip("ABCDE", names, strict=True)))
    return draft.with_reference(answer="ABCDE"[names.index(gold)], answer_text=gold).case


def rate_of(guess, cases):
    """How often a guesser is right, in five folds by case."""
    folds = np.array([random.Random(case.id).randrange(5) for case in cases])
    right = 0
    for fold in range(5):
        train = [case for case, at in zip(cases, folds, strict=True) if at != fold]
        test = [case for case, at in zip(cases, folds, strict=True) if at == fold]
        right += guess(train, test)
    return wilson(right, len(cases))


def stack(cases, features):
    """One row an option, and whether it is right."""
    rows = [features(list(case.question.options.values())) for case in cases]
    right = [letter == case.reference.answer for case in cases for letter in case.question.options]
    return np.vstack(rows), np.array(right)


def pick(scores, cases) -> int:
    """How many cases the highest score is right for."""
    best = scores.reshape(-1, 5).argmax(axis=1)
    return sum("ABCDE"[at] == case.reference.answer for at, case in zip(best, cases, strict=True))


def logistic(train, test) -> int:
    """Logistic regression on the outward form of the options."""
    from sklearn.linear_model import LogisticRegression

    from medthink.baselines.option_features import shapes_of

    (rows, right), (tried, _) = stack(train, shapes_of), stack(test, shapes_of)
    return pick(LogisticRegression(max_iter=2000).fit(rows, right).predict_proba(tried)[:, 1], test)


def tfidf(train, test) -> int:
    """Logistic regression on words and letters."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts = [text for case in train for text in case.question.options.values()]
    right = [letter == case.reference.answer for case in train for letter in case.question.options]
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=2)
    model = LogisticRegression(max_iter=2000).fit(vectors.fit_transform(texts), right)
    tried = vectors.transform([text for case in test for text in case.question.options.values()])
    return pick(model.predict_proba(tried)[:, 1], test)


def boosting(train, test) -> int:
    """Boosted trees on the outward form of the options."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    from medthink.baselines.option_features import shapes_of

    (rows, right), (tried, _) = stack(train, shapes_of), stack(test, shapes_of)
    model = HistGradientBoostingClassifier(max_iter=80, random_state=0).fit(rows, right)
    return pick(model.predict_proba(tried)[:, 1], test)


# --- size ------------------------------------------------------------------------------------------------------------


def measure_scale() -> None:
    """Time and memory of all rule stages on 1,000 and 10,000 cases, each in a process of its own."""
    figures = {}
    for cases in (1_000, 10_000):
        command = [sys.executable, __file__, "one-size", str(cases)]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        seconds, megabytes = float(told[0]), float(told[1])
        figures[cases] = (seconds, megabytes)
        print(f"       {cases:,} cases: {seconds:.0f} CPU s, {megabytes:.0f} MB at most; {' '.join(told[2:])}")
    (_, small), (seconds, large) = figures[1_000], figures[10_000]
    bar("10,000 cases through all rule stages", f"{seconds / 60:.1f} min", seconds < 600, "minutes")
    bar("memory for ten times the cases", f"+{large - small:.0f} MB", large - small < 200, "flat")


def one_size(cases: int) -> None:
    """What `measure_scale` starts: one size."""
    with tempfile.TemporaryDirectory() as folder:
        with (Path(folder) / "cases.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = None
            for number in range(1, cases + 1):
                row, _ = make_raw_row(2, number)
                if writer is None:
                    writer = csv.DictWriter(stream, row)
                    writer.writeheader()
                writer.writerow(row)
        stamps: list[tuple[str, float]] = []

        def watch(stage: str):
            stamps.append((stage, time.process_time()))
            return lambda: None

        plan = Path(folder) / "plan.toml"
        text = f'work = "work"\n[ingest]\nsource = "cases.csv"\nmin_images = 0\n{STAGES}{LABELS}'
        plan.write_text(text, encoding="utf-8")
        began = time.process_time()
        build(read_plan(plan), watch)
        ended = time.process_time()
    times = [
        (name, round((stamps[at + 1][1] if at + 1 < len(stamps) else ended) - start))
        for at, (name, start) in enumerate(stamps)
    ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{ended - began:.1f} {peak:.0f} {' '.join(f'{name}:{seconds}s' for name, seconds in times)}")


# --- text in images --------------------------------------------------------------------------------------------------


def measure_ocr() -> None:
    """Diagnoses written into drawn pictures at three sizes; false: found in a plain picture, or in another name."""
    from medthink.curate.stages.leaks import BurnedInReader, find_written

    reader, chance, began = BurnedInReader(), random.Random(1), time.process_time()
    hits, tried, false, plain = Counter(), Counter(), Counter(), Counter()
    for number in range(1, OCR_PICTURES + 1):
        picture, name, other = drawn_picture(number)
        for what, text, pixels in (
            ("no text", "", 0),
            ("another name", other, 14),
            *(("", name, px) for px in OCR_SIZES),
        ):
            written = burn_in(picture, text, pixels, chance) if text else picture
            if written is None:
                continue
            texts = reader.read(as_jpeg(written), name="x")
            is_found = bool(find_written(name, texts))
            (plain if what else tried)[what or pixels] += 1
            (false if what else hits)[what or pixels] += is_found
            if is_found == bool(what):
                print(f"       case {number}, {what or name}, {pixels} px, was read as {texts}", flush=True)
    found, total = hits.total(), tried.total()
    each = ", ".join(f"{pixels} px {hits[pixels]} of {tried[pixels]}" for pixels in sorted(tried))
    bar("burned-in diagnoses", f"{found / total:.2f} ({each})", found >= 0.85 * total, "≥ 0.85")
    alarms = ", ".join(f"{what} {false[what]} of {plain[what]}" for what in plain)
    bar("false alarms", alarms, false.total() <= 0.03 * plain.total(), "≤ 3 %")
    print(f"       {(time.process_time() - began) / (total + plain.total()):.1f} CPU s a picture")


def drawn_picture(number: int):
    """A drawn picture of 512 pixels, its diagnosis, and another diagnosis of its list."""
    from PIL import Image

    from medthink.phantoms.painters import paint_jpeg
    from medthink.phantoms.painters.scene import ImageSpec

    _, plan = make_raw_row(6, number)
    shot, name = plan.shots[0], plan.disease.name
    data = paint_jpeg(shot.view.painter, ImageSpec(shot.sign, 1, shot.size), number)
    others = options_of([disease.name for disease in plan.options], name)
    return Image.open(io.BytesIO(data)).convert("RGB").resize((512, 512)), name, others[0]


def burn_in(plain, text: str, pixels: int, chance: random.Random):
    """The picture with this text at its top, middle or bottom, as a viewer writes it; None if it is too wide.

    White on dark, black on bright; with an outline where the ground changes under it, since what nobody can read tells
    nothing.
    """
    from PIL import ImageDraw, ImageFont

    picture, font = plain.copy(), ImageFont.load_default(pixels)
    draw = ImageDraw.Draw(picture)
    room = picture.width - draw.textlength(text, font=font) - 6
    if room <= 0:
        return None
    place = (chance.uniform(3, room), chance.choice((4, picture.height // 2, picture.height - pixels - 8)))
    ground = np.asarray(plain.crop(tuple(map(int, draw.textbbox(place, text, font=font)))).convert("L")).astype(int)
    level = 255 if ground.mean() < 128 else 0
    is_even = np.mean(abs(ground - level) < LEAST_CONTRAST) < 0.02
    fill, edge = (level,) * 3, (255 - level,) * 3
    draw.text(place, text, fill=fill, font=font, stroke_width=0 if is_even else 1, stroke_fill=edge)
    return picture


def as_jpeg(picture) -> bytes:
    """The picture as a file."""
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=90)
    return stream.getvalue()


BARS = {
    "sample": measure_sample,
    "plants": measure_plants,
    "guessers": measure_guessers,
    "scale": measure_scale,
    "ocr": measure_ocr,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["one-size"]:
        one_size(int(sys.argv[2]))
    else:
        main()
