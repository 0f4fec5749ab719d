"""What the pages show, and that the address alone decides it."""

import re
from pathlib import Path

import pytest

from made_runs import make_run
from medthink import web
from medthink.core.digest import digest_bytes
from medthink.scoring.compare import compare_runs
from medthink.scoring.inputs import load_runs
from medthink.scoring.score import score
from small_benchmark import write_benchmark
from web_pages import open_viewer, slug


def rows(page: str) -> list[str]:
    return re.findall(r"<tr[^>]*>.*?</tr>", page.split("<tbody>")[1].split("</tbody>")[0], re.DOTALL)


def cases(page: str) -> list[int]:
    return [int(re.search(r"/cases/(\d+)", row)[1]) for row in rows(page)]


def test_the_list_names_every_run_with_accuracy_gain_and_cost(pages):
    page = pages.at("/")
    assert len(rows(page)) == 3
    assert "12 cases of bench, split test" in page
    seeing = next(row for row in rows(page) if ">seeing<" in row)
    assert "points" not in seeing and "2 no letter" in seeing and "%" in seeing and "$0.01" in seeing


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["blind", "other", "seeing"]),
        ("?q=13b", ["other"]),
        ("?task=twi", ["blind", "seeing"]),
        ("?q=made+seeing", ["seeing"]),
        ("?sort=name&down=1", ["seeing", "other", "blind"]),
        ("?sort=model", ["blind", "seeing", "other"]),
        ("?activity=running", []),
        ("?sort=nonsense&what=ever", ["blind", "other", "seeing"]),
    ],
)
def test_the_address_filters_and_sorts_the_runs(pages, query, names):
    page = pages.at("/" + query)
    assert re.findall(r'class="name"><a href="[^"]*">([^<]*)<', page) == names


def test_a_run_lists_every_case(pages):
    page = pages.at("/runs/{seeing}")
    assert cases(page) == list(range(100, 112))
    assert page.count("no letter</span>") >= 2


def test_a_run_is_listed_in_pages_of_200_which_the_server_filters(tmp_path):
    bench = write_benchmark(tmp_path / "bench", cases=450, images=1)
    make_run(tmp_path / "runs/long", bench, silent=210)
    viewer, client = open_viewer(tmp_path / "runs", tmp_path)
    with client:
        place = f"/runs/{slug(viewer, 'long')}"
        pages = [client.get(f"{place}{query}").text for query in ("", "?page=2", "?page=3", "?page=99")]
        assert [len(cases(page)) for page in pages] == [200, 200, 50, 50]
        assert sorted(one for page in pages[:3] for one in cases(page)) == list(range(100, 550))
        assert 'rel="prev"' not in pages[0] and 'href="?page=2"' in pages[0] and 'rel="next"' not in pages[2]
        unparsed = client.get(f"{place}?state=unparsed&page=2").text
        assert cases(unparsed) == list(range(300, 310)) and "210 of 450 cases" in unparsed
        assert 'href="?state=unparsed&amp;page=1"' in unparsed and "sort=case&amp;state=unparsed" in unparsed


def test_cases_are_filtered_by_result_state_slice_and_words(pages):
    right, wrong = (cases(pages.at(f"/runs/{{seeing}}?result={result}")) for result in ("right", "wrong"))
    assert sorted(right + wrong) == list(range(102, 112)) and right and wrong
    assert cases(pages.at("/runs/{seeing}?state=unparsed")) == [100, 101]
    assert cases(pages.at("/runs/{seeing}?q=107")) == [107]
    assert cases(pages.at("/runs/{seeing}?slice=length+rank+of+the+right+option:1+(longest)"))
    assert "No matching cases" in pages.at("/runs/{seeing}?q=nothing-like-it")
    assert cases(pages.at("/runs/{seeing}?sort=case&down=1")) == list(range(111, 99, -1))


def test_a_case_without_an_answer_is_shown_by_its_state_and_never_as_wrong(pages):
    """Neither in its own run nor beside another; in accuracy and among discordant cases it counts as it is scored."""
    seeing = next(run.slug for run in pages.viewer.shelf.runs() if run.name == "seeing")
    assert all("wrong" not in row for row in rows(pages.at("/runs/{seeing}?state=unparsed")))
    beside = rows(pages.at(f"/runs/{{other}}?against={seeing}&q=100"))
    assert len(beside) == 1 and 'class="letter wrong">–' not in beside[0]
    assert "neither right" in pages.at("/versus/{seeing}/{other}")


def test_flipped_cases_are_those_of_the_comparison(pages):
    runs = {run.name: run for run in pages.viewer.shelf.runs()}
    scored = [score(one) for one in load_runs([runs["seeing"].path, runs["other"].path])]
    (pair,) = compare_runs(scored, runs["seeing"].selected).pairs
    at = f"/runs/{{seeing}}?against={runs['other'].slug}"
    assert cases(pages.at(at + "&flip=won")) == list(pair.won)
    assert cases(pages.at(at + "&flip=any")) == sorted((*pair.won, *pair.lost))
    versus = pages.at("/versus/{seeing}/{other}")
    assert f"A is better on {len(pair.won)}, B on {len(pair.lost)}" in versus
    assert f"{pair.difference.value * 100:+.1f}".replace("-", "−") in versus


def test_a_case_shows_history_options_images_prompts_and_reference(pages):
    page = pages.at("/runs/{seeing}/cases/105")
    assert "number 105 of the clinic" in page and "Disease C105" in page and "WITHHELD discussion 105" in page
    assert page.count("data-full=") == 2 and "WITHHELD caption 105.1" in page
    assert "Step 3 · differential" in page and "It fits, so" in page


def test_neighbours_follow_the_filtered_list(pages):
    wrong = cases(pages.at("/runs/{seeing}?result=wrong"))
    page = pages.at(f"/runs/{{seeing}}/cases/{wrong[1]}?result=wrong")
    assert f"cases/{wrong[0]}?result=wrong" in page and f"cases/{wrong[2]}?result=wrong" in page
    assert f"2 of {len(wrong)}" in page


@pytest.mark.parametrize(
    "address",
    ["/nothing", "/runs/nothing", "/runs/{seeing}/cases/9", "/runs/{seeing}/cases/100/7", "/runs/{seeing}/cases/x",
     "/versus/{seeing}/nothing", "/versus?a=x&b=y", "/static/nothing.js", "/static/..%2fviewer.py",
     "/images/nothing/112", "/images/..%2f..%2fetc/112"],
)  # fmt: skip
def test_what_is_not_there_is_a_page_that_says_so(pages, address):
    answer = pages.ask(address)
    assert answer.status_code == 404 and "Page not found" in answer.text


def test_two_runs_are_chosen_by_a_form(pages):
    assert 'name="b"' in pages.at("/versus")
    names = {run.name: run.slug for run in pages.viewer.shelf.runs()}
    answer = pages.ask(f"/versus?a={names['seeing']}&b={names['other']}", follow_redirects=False)
    assert answer.headers["location"] == f"/versus/{names['seeing']}/{names['other']}"


def test_one_run_against_itself_is_no_comparison(pages):
    assert "Both are the same run" in pages.at("/versus/{seeing}/{seeing}")


def test_several_samples_stand_one_by_one(pages, tmp_path):
    bench = pages.viewer.shelf.runs()[0].bench.benchmark.path
    make_run(tmp_path / "runs/often", bench, samples=3)
    viewer, client = open_viewer(tmp_path / "runs", tmp_path / "cache")
    with client:
        run = viewer.shelf.runs()[0]
        assert len(rows(client.get(f"/runs/{run.slug}").text)) == 36
        page = client.get(f"/runs/{run.slug}/cases/100/2").text
        assert "Sample 3" in page and 'aria-current="page">Sample 3' in page


def test_a_run_without_letters_and_one_without_options_are_shown(pages, tmp_path):
    bench = pages.viewer.shelf.runs()[0].bench.benchmark.path
    make_run(tmp_path / "runs/discussing", bench, task="discussion")
    make_run(tmp_path / "runs/free", bench, show_options=False)
    viewer, client = open_viewer(tmp_path / "runs", tmp_path / "cache")
    with client:
        for run in viewer.shelf.runs():
            assert client.get(f"/runs/{run.slug}").status_code == 200
            assert client.get(f"/runs/{run.slug}/cases/100").status_code == 200
        first, second = viewer.shelf.runs()
        assert "no answers by letter" in client.get(f"/versus/{first.slug}/{second.slug}").text


def test_everything_works_when_the_benchmark_is_gone(pages, tmp_path):
    import shutil

    shutil.copytree(pages.viewer.shelf.runs()[0].bench.benchmark.path, tmp_path / "bench")
    make_run(tmp_path / "runs/one", tmp_path / "bench")
    make_run(tmp_path / "runs/two", tmp_path / "bench", model="server/two")
    shutil.rmtree(tmp_path / "bench")
    viewer, client = open_viewer(tmp_path / "runs", tmp_path / "cache")
    with client:
        one, two = viewer.shelf.runs()
        for address in ("/", f"/runs/{one.slug}", f"/runs/{one.slug}/cases/100", f"/versus/{one.slug}/{two.slug}"):
            assert client.get(address).status_code == 200, address
        assert "benchmark not found" in client.get("/").text
        assert "--data" in client.get(f"/runs/{one.slug}").text


def test_an_empty_folder_says_how_to_begin(tmp_path):
    (tmp_path / "runs").mkdir()
    _, client = open_viewer(tmp_path / "runs", tmp_path / "cache")
    with client:
        assert "No runs yet" in client.get("/").text


def test_nothing_is_written_into_a_run(pages, tmp_path):
    run = next(run for run in pages.viewer.shelf.runs() if run.name == "seeing")
    before = {path.name: path.stat().st_mtime_ns for path in run.path.iterdir()}
    for address in ("/", "/runs/{seeing}", "/runs/{seeing}/cases/104", "/versus/{seeing}/{other}"):
        pages.at(address)
    assert {path.name: path.stat().st_mtime_ns for path in run.path.iterdir()} == before


def test_a_page_and_its_scripts_name_scripts_by_their_digests(pages):
    asked = re.findall(r"/static/([a-z-]+\.js\?\w*)", pages.at("/runs/{seeing}/cases/105"))
    imported = [
        named for address in asked for named in re.findall(r'from "\./([^"]+)"', pages.ask(f"/static/{address}").text)
    ]
    assert {"grid.js", "keys.js"} <= {address.partition("?")[0] for address in imported}
    for address in (*asked, *imported):
        name, _, digest = address.partition("?")
        assert digest == digest_bytes(pages.ask(f"/static/{name}").content)[:16], address


def test_every_class_of_a_template_has_a_rule_or_a_script():
    """A class without one is a gap or a look that was meant and is not there."""
    place = Path(web.__file__).parent
    known = "".join(path.read_text() for path in (place / "app/static").iterdir() if path.suffix in (".css", ".js"))
    known += (place.parent / "report/assets/tokens.css").read_text()
    used = {
        name
        for path in place.rglob("*.html")
        for names in re.findall(r'class="([^"{}]*)"', path.read_text())
        for name in names.split()
    }
    assert len(used) > 100
    assert [name for name in sorted(used) if not re.search(rf"[.\"' ]{re.escape(name)}(?![\w-])", known)] == []
