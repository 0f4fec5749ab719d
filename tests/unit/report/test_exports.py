import csv
import io

import pytest

from made_runs import make_run
from medthink.report.entries import group_entries, load_entries
from medthink.report.exports import csv_table, escape_latex, escape_markdown, latex_tables, markdown_tables
from medthink.report.tables import headline_table, rank_range
from medthink.scoring.scores import percent


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
    assert float(rows["thrice"]["output_tokens_a_case"]) == 200


def test_a_paper_s_row_has_accuracy_rank_states_and_cost(blind):
    lines = markdown_tables([blind]).splitlines()
    (line,) = (line for line in lines if line.startswith("| big · 100 % images"))
    entry, place = next((entry, place) for entry, place in blind.ranked() if entry.name == "share-100")
    ranks = rank_range(place.rank, place.worst)
    assert line.split(" | ")[1:] == [percent(entry.accuracy), ranks, "2 unparsed", "\\$0.048 |"]


def test_every_markdown_row_has_the_same_cells(groups, hostile):
    text = markdown_tables([*groups, *hostile])
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 3 * 2 + 9
    assert {len(line.replace("\\|", "").split("|")) for line in lines} == {7}


def test_the_headline_has_no_column_that_says_nothing(blind, groups, runs):
    whole = headline_table(blind)
    assert {"Rank", "Tier", "No letter", "Of those answered", "Output tokens a case"} <= set(whole.columns)
    rows = {row[0]: dict(zip(whole.columns, row, strict=True)) for row in whole.rows}
    assert [rows[label]["No letter"] for label in ("big · 100 % images", "dice")] == ["2 unparsed", "–"]
    assert [rows[label]["Cost"] for label in ("dice", "kin-4b")] == ["$0.036", "not known"]
    assert [rows[label]["Output tokens a case"] for label in ("dice", "kin-4b")] == ["200", "–"]
    alone = headline_table(groups[1])
    assert not {"Rank", "Tier", "Of those answered"} & set(alone.columns)
    (silent,) = group_entries(load_entries([runs["small"]]))
    assert "Output tokens a case" not in headline_table(silent).columns


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
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in rows} == {4}
