import csv
import io
import shutil
import subprocess

import pytest

from made_runs import make_run
from medthink.core.markup import Table
from medthink.report.exports import (
    _latex_group,
    csv_table,
    escape_latex,
    escape_markdown,
    latex_tables,
    markdown_tables,
)
from medthink.report.guessing import audit_group, points_with_interval
from medthink.report.runs import group_entries, load_entries
from medthink.report.tables import headline_table
from medthink.scoring.scores import rate_text
from medthink.stats.estimate import rank_range


@pytest.fixture
def hostile(bench, tmp_path):
    run = make_run(tmp_path / "=1+1", bench, model='=HYPERLINK("x") | & % $ # _ { } ~ ^ \\ <b> `c` *d* [e]\u202e')
    return group_entries(load_entries([run]))


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_numbers_stay_numbers_and_texts_are_guarded(groups, hostile):
    rows = read(csv_table([*groups, *hostile]))
    assert len(rows) == 10
    for row in rows:
        assert row["accuracy"] == "" or 0 <= float(row["accuracy"]) <= 1
        int(row["cases"])
        assert not any(cell[:1] in tuple("=+-@") for cell in row.values())
    assert rows[-1]["model"].startswith("'=HYPERLINK") and rows[-1]["run"] == "'=1+1"
    assert rows[-1]["model"].endswith("[e]\ufffd")
    by_name = {row["run"]: row for row in rows}
    assert by_name["share-100"]["n_unparsed"] == "2" and by_name["small"]["cost_usd"] == ""
    assert float(by_name["small"]["findings_rougeL"]) > 0
    assert by_name["discussion"]["accuracy"] == "" and by_name["cued"]["group"] == "2"


def test_a_row_says_what_the_scores_say(blind):
    rows = {row["run"]: row for row in read(csv_table([blind]))}
    places = {entry.name: place for entry, place in blind.ranked()}
    for entry in blind.lettered:
        row, answers, place = rows[entry.name], entry.scores.answers, places[entry.name]
        told = [float(row[f"accuracy{end}"]) for end in ("", "_low", "_high", "_answered")]
        known = (answers.accuracy.value, answers.accuracy.low, answers.accuracy.high, answers.accuracy_answered.value)
        assert told == pytest.approx(known, abs=1e-6)
        assert [row["rank_best"], row["rank_worst"]] == [str(place.rank), str(place.worst)]
    assert float(rows["thrice"]["output_tokens_per_case"]) == 600  # three samples of 200


def test_a_paper_s_row_has_accuracy_gain_rank_tier_steps_states_and_cost(blind):
    audited = audit_group(blind, trains=False)
    lines = markdown_tables([blind], [audited]).splitlines()
    head = next(line for line in lines if line.startswith("| Run"))
    assert "Gain over it" in head and "Tier" in head and "ROUGE-L" in head
    (line,) = (line for line in lines if line.startswith("| big · 100 % images"))
    entry, place = next((entry, place) for entry, place in blind.ranked() if entry.name == "share-100")
    audit = next(audit for one, audit in audited.audits if one.name == "share-100")
    cells = dict(zip(head.strip("| ").split(" | "), line.strip("| ").split(" | "), strict=True))
    assert cells["Accuracy (95 % interval)"] == rate_text(entry.accuracy)
    assert cells["Rank"] == rank_range(place.rank, place.worst) and cells["Tier"] == str(place.tier)
    assert cells["Gain over it (points)"] == points_with_interval(audit.diagnostic_gain)
    assert cells["Strongest rival"].startswith(audit.strongest_rival)
    assert cells["No letter"] == "2 unparsed" and cells["Cost"] == "\\$0.048"


def test_the_table_of_numbers_has_the_gain_with_its_interval(blind):
    audited = audit_group(blind, trains=False)
    rows = {row["run"]: row for row in read(csv_table([blind], [audited]))}
    for entry, audit in audited.audits:
        told = [float(rows[entry.name][name]) for name in ("gain", "gain_low", "gain_high")]
        gain = audit.diagnostic_gain
        assert told == pytest.approx((gain.value, gain.low, gain.high), abs=1e-6)
        told = [float(rows[entry.name][f"normalised_gain{end}"]) for end in ("", "_low", "_high")]
        gain = audit.normalised_gain
        assert told == pytest.approx((gain.value, gain.low, gain.high), abs=1e-6)
    assert rows["share-100"]["gain_over_own_run_without_images"] == "1" and rows["low"]["tier"]
    assert rows["low"]["letters"] and rows["low"]["is_leader"] in ("0", "1")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX here")
def test_latex_compiles(groups, hostile, tmp_path):
    named = [*groups, *hostile]
    tables = latex_tables(named, [audit_group(group, trains=False) for group in named])
    # After a row's end a bracket would be a length, and a script that the fonts lack is written in brackets.
    rows = (("[a] run", "[b]"), ("模型", "–"), ("Модель ᚠ ع", "x"), ("\u0301e ~^\\", "👩‍⚕️"))
    tables += "\n".join(_latex_group("[t] 模型", Table(("[run]", "b"), rows)))
    packages = r"\usepackage{booktabs}\usepackage{graphicx}\usepackage[T1]{fontenc}"
    text = rf"\documentclass{{article}}{packages}\begin{{document}}{tables}\end{{document}}"
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "t.tex"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]


def test_latex_holds_only_what_its_fonts_have(groups, hostile):
    text = latex_tables([*groups, *hostile], [audit_group(group, trains=False) for group in [*groups, *hostile]])
    assert all(ord(character) < 256 for character in text)
    assert escape_latex("模型 −1.0 ≈ x") == "[U+6A21][U+578B] $-$1.0 $\\approx$ x"


def test_every_markdown_row_has_the_same_cells(groups, hostile):
    text = markdown_tables([*groups, *hostile])
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 3 * 2 + 9
    for part in text.split("**\n\n")[1:]:
        rows = [line for line in part.splitlines() if line.startswith("|")]
        assert len({len(line.replace("\\|", "").split("|")) for line in rows}) == 1


def test_the_headline_has_no_column_that_says_nothing(blind, groups, runs):
    whole = headline_table(blind)
    assert {"Rank", "Tier", "No letter", "Of those answered", "Output tokens per case"} <= set(whole.columns)
    rows = {row[0]: dict(zip(whole.columns, row, strict=True)) for row in whole.rows}
    assert [rows[label]["No letter"] for label in ("big · 100 % images", "dice")] == ["2 unparsed", "–"]
    assert [rows[label]["Cost"] for label in ("dice", "kin-4b")] == ["$0.036", "unknown"]
    assert [rows[label]["Output tokens per case"] for label in ("dice", "kin-4b")] == ["600", "–"]
    alone = headline_table(groups[1])
    assert not {"Rank", "Tier", "Of those answered"} & set(alone.columns)
    (silent,) = group_entries(load_entries([runs["small"]]))
    assert "Output tokens per case" not in headline_table(silent).columns


def test_markdown_is_escaped():
    assert escape_markdown("a|b\n<img> *x* [l](u) `c` $m$ &lt;") == (
        "a\\|b &lt;img> \\*x\\* \\[l\\](u) \\`c\\` \\$m\\$ &amp;lt;"
    )


def test_latex_is_escaped():
    assert escape_latex("50 % & _x_ #1 $a^2$ {b} ~ \\input{/etc/passwd} <c> |d| – …") == (
        r"50 \% \& \_x\_ \#1 \$a\textasciicircum{}2\$ \{b\} \textasciitilde{} \textbackslash{}input\{/etc/passwd\} "
        r"\textless{}c\textgreater{} \textbar{}d\textbar{} -- \ldots{}"
    )


def test_latex_tables_are_whole(groups, hostile):
    text = latex_tables([*groups, *hostile])
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 3
    for part in text.split(r"\end{table}")[:-1]:
        rows = [line for line in part.splitlines() if line.endswith(r"\\")]
        assert len({line.replace(r"\&", "").count("&") for line in rows}) == 1
