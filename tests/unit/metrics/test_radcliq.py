"""RadCliQ without weights: anchors, published rows, policies, precomputed components and annotations."""

import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from medthink.core.errors import DataError
from medthink.metrics.radcliq import (
    Components,
    ComponentScores,
    radcliq_v0,
    radcliq_v1,
    score_components,
    score_radcliq,
)
from medthink.metrics.radcliq.bertscore import BertScore
from medthink.metrics.radcliq.chexbert import CheXbert
from medthink.metrics.radcliq.composite import Advance, Bleu2, ignore_progress
from medthink.metrics.radcliq.precomputed import AnnotatedRadGraph, read_components
from medthink.metrics.radcliq.radgraph import RadGraph, radgraph_f1, read_annotation
from medthink.metrics.radcliq.score import join_radcliq
from medthink.metrics.radcliq.weights import (
    ENVIRONMENT,
    FoundWeights,
    MissingWeights,
    WeightSource,
    digest_weights,
    extract_archive,
)

SHARED = Path(__file__).parents[4] / "shared" / "data" / "radcliq.json"

ANCHORS = [
    ((1, 1, 1, 1), -0.24213342294409346, -1.4406902828047017),
    ((0, 0, 0, 0), 5.516160804054495, 2.4501430833271307),
    ((0.5, 1, 1, 1), 0.5523836938590196, -0.818082117695542),
]
# radgraph, bertscore, semb, bleu2 -> v0, v1: means published with three digits
PUBLISHED = [
    ((0.244, 0.518, 0.601, 0.195), 2.581, 0.692),
    ((0.023, 0.175, 0.061, 0.035), 4.863, 2.072),
    ((0.085, 0.204, 0.190, 0.065), 4.457, 1.819),
    ((0.032, -0.092, 0.248, 0.084), 5.340, 2.317),
]


class Fixed:
    """A component that gives one value, or a reason why not."""

    def __init__(self, name: str, value: float = 1.0, reason: str | None = None, cut: Sequence[int] = ()) -> None:
        self.name = name
        self.value = value
        self.reason = reason
        self.cut = list(cut)

    def unavailable(self) -> str | None:
        return self.reason

    def score(
        self, references: Sequence[str], candidates: Sequence[str], advance: Advance = ignore_progress
    ) -> ComponentScores:
        assert all(text.strip() for text in (*references, *candidates))
        return ComponentScores([self.value] * len(references), self.cut)

    def fingerprint(self) -> dict[str, str]:
        return {"value": str(self.value)}


def fixed(**changes: Any) -> list[Any]:
    return [changes.get(name, Fixed(name)) for name in ("radgraph", "bertscore", "semb", "bleu2")]


@pytest.mark.parametrize(("components", "v0", "v1"), ANCHORS)
def test_anchors(components: tuple[float, ...], v0: float, v1: float) -> None:
    assert radcliq_v0(Components(*components)) == pytest.approx(v0, abs=1e-12)
    assert radcliq_v1(Components(*components)) == pytest.approx(v1, abs=1e-12)


@pytest.mark.parametrize(("components", "v0", "v1"), PUBLISHED)
def test_published_means(components: tuple[float, ...], v0: float, v1: float) -> None:
    assert radcliq_v0(Components(*components)) == pytest.approx(v0, abs=0.0026)
    assert radcliq_v1(Components(*components)) == pytest.approx(v1, abs=0.0026)


def test_all_check_rows() -> None:
    if not SHARED.exists():
        pytest.skip("shared check data is not here")
    data = json.loads(SHARED.read_bytes())
    assert len(data["rexrank_rows"]) >= 25
    for row in data["rexrank_rows"]:
        components = Components(row["radgraph"], row["bertscore"], row["semb"], row["bleu2"])
        assert radcliq_v0(components) == pytest.approx(row["v0"], abs=0.0026), row
        assert radcliq_v1(components) == pytest.approx(row["v1"], abs=0.0026), row


def test_a_missing_component_gives_a_reason_and_no_value() -> None:
    result = score_radcliq(["a b"], ["a b"], fixed(semb=Fixed("semb", reason="no weights")))
    assert result.status == "not computed: semb: no weights"
    assert (result.v0, result.v1, result.rows, result.is_computed) == (None, None, [], False)
    assert "no provider" in score_radcliq(["a"], ["a"], fixed()[:3]).status


def test_empty_texts() -> None:
    result = score_radcliq(["mass", "mass", " ", ""], ["mass", " \n", "mass", ""], fixed())
    assert [row.state for row in result.rows] == ["ok", "empty_candidate", "empty_reference", "empty_reference"]
    assert result.states == {"ok": 1, "empty_candidate": 1, "empty_reference": 2}
    assert result.rows[1].v0 == pytest.approx(5.516160804054495)
    assert result.rows[2].v1 is None
    assert result.v1 == pytest.approx((-1.4406902828047017 + 2.4501430833271307) / 2)


def test_truncated_pairs_are_counted_once() -> None:
    assert (
        score_radcliq(
            ["a", "b"], ["a", "b"], fixed(semb=Fixed("semb", cut=[1]), radgraph=Fixed("radgraph", cut=[1]))
        ).truncated
        == 1
    )


def test_fingerprint_of_every_component_is_kept() -> None:
    result = score_radcliq(["a"], ["a"], [*fixed()[:3], Bleu2()])
    assert set(result.fingerprint) == {"radgraph", "bertscore", "semb", "bleu2"}
    assert "idf off" in result.policy


def test_portions_that_are_joined_are_the_whole() -> None:
    texts = ["a", "", "c", "d"], ["a", "b", "", "d"]
    whole = score_radcliq(*texts, fixed())
    parts = [score_radcliq(*(side[place : place + 2] for side in texts), fixed()) for place in (0, 2)]
    assert join_radcliq(parts) == whole
    other = score_radcliq(["a"], ["a"], [*fixed()[:3], Bleu2()])
    assert join_radcliq([whole, other]).status == "not computed: bleu2: the workers have different weights or packages"
    missing = score_radcliq(["a"], ["a"], fixed(semb=Fixed("semb", reason="no weights")))
    assert join_radcliq([whole, missing]).status == "not computed: semb: no weights"


def test_the_inverse_stops_at_its_pole() -> None:
    assert score_radcliq(["a"], ["a"], fixed()).inverse_v1 is None
    poor = [Fixed(name, 0.0) for name in ("radgraph", "bertscore", "semb", "bleu2")]
    assert score_radcliq(["a"], ["b"], poor).inverse_v1 == pytest.approx(1 / 2.4501430833271307)


def entity(tokens: str, label: str, *relations: list[str]) -> dict[str, Any]:
    return {"tokens": tokens, "label": label, "start_ix": 0, "end_ix": 0, "relations": list(relations)}


SMALL = {"entities": {"1": entity("small", "OBS-DP", ["modify", "2"]), "2": entity("effusion", "OBS-DP")}}
LARGE = {"entities": {"1": entity("large", "OBS-DP", ["modify", "2"]), "2": entity("effusion", "OBS-DP")}}
BARE = {"entities": {"1": entity("effusion", "OBS-DP")}}


def test_radgraph_f1() -> None:
    small, large, bare = map(read_annotation, (SMALL, LARGE, BARE))
    assert radgraph_f1(small, small) == 1
    assert radgraph_f1(small, large) == pytest.approx(0.25)
    assert radgraph_f1(bare, bare) == 0.5
    nothing = read_annotation({"entities": {}})
    assert radgraph_f1(nothing, nothing) == radgraph_f1(small, nothing) == 0


def test_radgraph_keeps_case_and_label() -> None:
    upper = read_annotation({"entities": {"1": entity("Effusion", "OBS-DP")}})
    denied = read_annotation({"entities": {"1": entity("effusion", "OBS-DA")}})
    assert radgraph_f1(read_annotation(BARE), upper) == radgraph_f1(read_annotation(BARE), denied) == 0


@pytest.mark.parametrize(
    "value", [None, [], {"entities": {"1": {"tokens": 3}}}, {"entities": {"1": entity("a", "b", ["modify", "9"])}}]
)
def test_a_broken_annotation_is_refused(value: Any) -> None:
    with pytest.raises(DataError):
        read_annotation(value)


def test_annotations_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps({"references": {"x": SMALL}, "candidates": {"x": LARGE}}))
    component = AnnotatedRadGraph(path, {("small effusion", "large effusion"): "x"})
    assert component.unavailable() is None
    result = score_radcliq(["small effusion"], ["large effusion"], fixed(radgraph=component))
    assert result.rows[0].components is not None and result.rows[0].components.radgraph == pytest.approx(0.25)
    absent = AnnotatedRadGraph(path, {("a", "b"): "y"})
    assert absent.unavailable() == "no annotation of y in annotations.json"


def test_components_from_csv_and_json(tmp_path: Path) -> None:
    table = tmp_path / "c.csv"
    table.write_text("id;radgraph;bertscore;semb;bleu\na;1;1;1;1\nb;0;0;0;0\n")
    listed = tmp_path / "c.json"
    listed.write_text('[{"id": "a", "radgraph": 1, "bertscore": 1, "semb": 1, "bleu2": 1}]')
    read = read_components(table)
    assert read["a"] == read_components(listed)["a"] == Components(1, 1, 1, 1)
    result = score_components([read["b"], read["a"]], source="c.csv")
    assert result.v1 == pytest.approx((-1.4406902828047017 + 2.4501430833271307) / 2)
    assert result.fingerprint == {"precomputed": {"source": "c.csv"}}
    assert score_components([read["a"], None], source="c.csv").status.startswith("not computed: components of pair 2")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("id,radgraph,bertscore,semb,bleu2\na,1,1,,1\n", "semb"),
        ("id,radgraph,bertscore,semb,bleu2\na,1,nan,1,1\n", "bertscore"),
        ("id,radgraph,bertscore,semb,bleu2\na,1,x,1,1\n", "bertscore"),
        ("id,radgraph,bertscore,semb,bleu2\na,1,1,1,1\na,1,1,1,1\n", "twice"),
        ("radgraph\n1\n", "id"),
    ],
)
def test_a_broken_table_names_row_and_field(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "c.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=complaint) as caught:
        read_components(path)
    # The header is row 1, as in every table.
    assert caught.value.row in (2, 3)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without weights."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


@pytest.mark.parametrize("component", [BertScore, CheXbert, RadGraph])
def test_without_weights_every_model_component_says_why(component: Any, nowhere: Path) -> None:
    reason = component().unavailable()
    assert reason is not None and ("not installed" in reason or "neither in MEDTHINK_WEIGHTS" in reason)


def test_weights_are_looked_for_in_order(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(WeightSource().find_model("distilroberta-base"), MissingWeights)
    (nowhere / "env" / "distilroberta-base").mkdir(parents=True)
    monkeypatch.setenv(ENVIRONMENT, str(nowhere / "env"))
    assert WeightSource().find_model("distilroberta-base") == FoundWeights(
        nowhere / "env" / "distilroberta-base", ENVIRONMENT
    )
    given = WeightSource(explicit=nowhere).find_model("distilroberta-base")
    assert given == FoundWeights(nowhere, "path given")
    with pytest.raises(DataError, match="no such weights"):
        WeightSource(explicit=nowhere / "not-there").find_model("x")


def test_an_archive_that_leads_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "evil.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("../outside.txt")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"evil"))
    with pytest.raises(DataError, match="cannot be unpacked"):
        extract_archive(archive, tmp_path / "in")
    assert not (tmp_path / "outside.txt").exists()


def test_digests_of_a_folder_are_by_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_weights(tmp_path) == {"sha256:a/b.txt": empty}
    assert digest_weights(tmp_path / "a" / "b.txt") == {"sha256:b.txt": empty}
