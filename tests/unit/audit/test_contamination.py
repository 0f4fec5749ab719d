"""Whether a model has seen the cases: alarms for one that has, none for one that has not, no claim without a lot."""

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from medthink.audit.contamination import DATE_COLUMN, accuracy_by_date, read_date
from medthink.cli.command import run_command
from medthink.scoring.inputs import load_all
from medthink.scoring.score import score_letters
from remembering_server import RememberingServer
from small_benchmark import make_row, picture

CASES = 60


def write_cases(root: Path, *, shuffled: bool = True, first: int = 3000) -> Path:
    """Cases whose options stand in an order drawn by lot, the right one among them, and every second dated 2026."""
    rng = np.random.default_rng(first)
    rows = []
    for place in range(CASES):
        number = first + place * 7
        row = make_row(number, 1)
        names = [f"Disease {word} {number}" for word in ("alpha", "beta", "gamma", "delta", "omega")]
        order = rng.permutation(5) if shuffled else np.argsort(names)
        right = "ABCDE"[int(rng.integers(5))]
        row["options"] = {letter: names[k] for letter, k in zip("ABCDE", order, strict=True)}
        row |= {"correct_answer": right, "correct_answer_text": row["options"][right]}
        row["case_date"] = "2026-05-01" if place % 2 else "2020-01-31"
        rows.append(row)
    root.mkdir()
    (root / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row in rows:
        path = root / row["image_01_path"]
        path.parent.mkdir(parents=True)
        path.write_bytes(picture(0))
    return root


def make_runs(bench: Path, out: Path, share: float, **habits) -> list[str]:
    """Recall, answers, and answers in another order, of a server that remembers a share of the cases."""
    with RememberingServer(bench / "test.jsonl", share, **habits) as server:
        model = ["--model", "server/m", "--base-url", server.url, "--image-share", "0"]
        for name, flags in (("recall", ["--task", "recall"]), ("answer", []), ("other", ["--option-order", "seeded"])):
            assert run_command(["run", str(bench), *model, *flags, "--out", str(out / name)]) == 0
    return [str(out / name) for name in ("recall", "answer", "other")]


def audit(capsys, *words: str) -> tuple[int, list[dict]]:
    capsys.readouterr()
    code = run_command(["audit", "contamination", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def traces(found: dict) -> dict[str, dict]:
    return {trace["kind"]: trace for trace in found["traces"]}


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Path:
    return write_cases(tmp_path_factory.mktemp("memory") / "bench")


@pytest.fixture(scope="module")
def seen(bench, tmp_path_factory) -> list[str]:
    """The runs of a model that has a part of the cases by heart."""
    return make_runs(bench, tmp_path_factory.mktemp("seen"), 0.4)


@pytest.fixture(scope="module")
def unseen(bench, tmp_path_factory) -> list[str]:
    """The runs of a model that never saw them, and likes the letter A."""
    return make_runs(bench, tmp_path_factory.mktemp("unseen"), 0.0, favourite="A")


def test_a_model_that_has_part_of_the_file_by_heart_raises_the_alarm(seen, capsys):
    runs = seen
    code, (found,) = audit(capsys, *runs)
    by_kind = traces(found)
    assert code == 1
    for kind in ("letters", "case number"):
        assert by_kind[kind]["p_holm"] < 0.01 and by_kind[kind]["test"]["found"] > by_kind[kind]["test"]["expected"]
    # It knows the options in any order, so the order alone shows nothing.
    assert by_kind["hidden option"]["p_holm"] == 1
    assert found["verbatim"][0]["rate"]["value"] > 0.2
    assert run_command(["audit", "contamination", *runs]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "ALARM: server/m knows things that cannot be inferred from the case (letters, case number)" in shown
    assert "At most 1 % of models that have not seen the cases raise this alarm." in shown
    assert "a number is hit no more often than those beside it; the other numbers named are off by" in shown


def test_memory_of_the_sequence_alone_is_seen_by_the_shuffled_control(bench, tmp_path, capsys):
    runs = make_runs(bench, tmp_path, 0.5, in_order=True)
    code, (found,) = audit(capsys, *runs)
    by_kind = traces(found)
    assert code == 1
    assert by_kind["hidden option"]["p_holm"] < 0.01
    assert by_kind["answers"]["p_holm"] < 0.01


def test_a_model_that_never_saw_it_raises_none_and_the_output_says_what_could_have_been_seen(unseen, capsys):
    runs = unseen
    code, (found,) = audit(capsys, *runs)
    assert code == 0 and not any(trace["p_holm"] < 0.01 for trace in found["traces"])
    assert run_command(["audit", "contamination", *runs]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "No alarm" in shown and "With 80 % power, memory of this share of the cases would be detected: letters" in shown
    )


def test_controls_are_audited_alike_and_set_beside(bench, seen, tmp_path, capsys):
    other = write_cases(tmp_path / "unseen", first=50_000)
    with RememberingServer(bench / "test.jsonl", 0.4) as server:
        words = [
            "--model",
            "server/m",
            "--base-url",
            server.url,
            "--task",
            "recall",
            "--out",
            str(tmp_path / "control"),
        ]
        assert run_command(["run", str(other), *words]) == 0
    code, (own, control) = audit(capsys, seen[0], "--control", str(tmp_path / "control"))
    assert code == 1 and control["is_control"] and not any((one["p_holm"] or 1) < 0.01 for one in control["traces"])
    beside = own["verbatim"][1]
    assert beside["what"] == "cases that cannot have been seen" and beside["rate"]["value"] == 0
    assert beside["gap"]["low"] > 0


def test_an_order_that_follows_the_alphabet_says_nothing_of_memory(tmp_path, capsys):
    bench = write_cases(tmp_path / "sorted", shuffled=False)
    runs = make_runs(bench, tmp_path, 0.0)
    code, (found,) = audit(capsys, *runs)
    by_kind = traces(found)
    assert code == 0
    for kind in ("letters", "hidden option", "answers"):
        assert by_kind[kind]["test"] is None and "follow the alphabet" in by_kind[kind]["untested"]
    assert by_kind["case number"]["test"] is not None


def test_accuracy_before_and_after_a_date_is_information_with_an_interval(seen, capsys):
    _, (found,) = audit(capsys, *seen, "--model-date", "2026-01-01")
    gap = found["dates"][0]
    assert (gap["before"]["n"], gap["after"]["n"], gap["undated"]) == (30, 30, 0)
    assert gap["difference"]["low"] < gap["before"]["value"] - gap["after"]["value"] < gap["difference"]["high"]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("2020-01-31", (date(2020, 1, 31), date(2020, 1, 31))),
        ("2020-01-31T10:00:00", (date(2020, 1, 31), date(2020, 1, 31))),
        ("31.01.2020", (date(2020, 1, 31), date(2020, 1, 31))),
        ("2020-02", (date(2020, 2, 1), date(2020, 2, 29))),
        ("2020", (date(2020, 1, 1), date(2020, 12, 31))),
        (2020, (date(2020, 1, 1), date(2020, 12, 31))),
        ("soon", None),
        (None, None),
    ],
)
def test_dates_are_read_in_the_forms_rows_have(text, span):
    assert read_date(text) == span


@pytest.mark.parametrize(
    ("dated", "counts"),
    [
        ("2024", (0, 0, 60)),
        ("2024-06", (0, 0, 60)),
        ("2024-05", (60, 0, 0)),
        ("2024-07", (0, 60, 0)),
        ("2025", (0, 60, 0)),
    ],
)
def test_a_year_is_neither_before_nor_after_a_day_in_it(seen, dated, counts):
    (material,) = load_all([Path(seen[1])])
    cases = {number: structs.replace(case, extra={DATE_COLUMN: dated}) for number, case in material.cases.items()}
    gap = accuracy_by_date(material._replace(cases=cases), score_letters(material), date(2024, 6, 15))
    assert (gap.before.n, gap.after.n, gap.undated) == counts


def test_the_order_in_which_reordered_runs_are_named_changes_nothing(bench, seen, tmp_path, capsys):
    recall, answer, seeded = seen
    with RememberingServer(bench / "test.jsonl", 0.1) as server:
        words = ["--model", "server/m", "--base-url", server.url, "--image-share", "0", "--option-order", "2"]
        assert run_command(["run", str(bench), *words, "--out", str(tmp_path / "turned")]) == 0
    turned = str(tmp_path / "turned")
    found = [audit(capsys, recall, answer, *others)[1][0] for others in ((seeded, turned), (turned, seeded))]
    assert traces(found[0])["answers"]["test"] == traces(found[1])["answers"]["test"] is not None


def test_without_a_recall_run_it_says_how_to_make_one(bench, unseen, capsys):
    assert run_command(["audit", "contamination", unseen[1]]) == 2
    assert "medthink run DATA --task recall" in capsys.readouterr().err


def test_scoring_a_recall_run_says_where_to_look(bench, tmp_path, capsys):
    assert (
        run_command(["run", str(bench), "--task", "recall", "--model", "baseline/random", "--out", str(tmp_path / "r")])
        == 0
    )
    assert run_command(["score", str(tmp_path / "r")]) == 0
    assert "medthink audit contamination" in " ".join(capsys.readouterr().out.split())


def test_a_recall_run_is_neither_judged_nor_submitted(unseen, tmp_path, capsys):
    assert run_command(["judge", unseen[0], "--judge", "baseline/rules"]) == 2
    assert "this task produces nothing to judge" in capsys.readouterr().err
    assert run_command(["submission", "pack", unseen[0], "-o", str(tmp_path / "s.jsonl")]) == 2
    assert "no letters to submit" in capsys.readouterr().err
