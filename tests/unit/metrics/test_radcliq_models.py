"""RadCliQ's model components with tiny random checkpoints, made here and read by the real loading code."""

import pickle
import tarfile
from pathlib import Path
from typing import Any

import pytest

from lazily import Lazily
from medthink.core.errors import DataError
from medthink.metrics.radcliq import score_radcliq
from medthink.metrics.radcliq.bertscore import BASELINE, LAYER, BertScore
from medthink.metrics.radcliq.chexbert import CheXbert, load_encoder
from medthink.metrics.radcliq.composite import Bleu2
from medthink.metrics.radcliq.radgraph import RadGraph
from medthink.metrics.radcliq.weights import ENVIRONMENT, WeightSource
from radcliq_checkpoints import SENTENCES, build_bert_tokenizer, build_chexbert, build_radgraph, build_roberta

torch = Lazily("torch")
transformers = Lazily("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

LONG = " ".join(["effusion and atelectasis"] * 400)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("weights")
    build_roberta(root / "distilroberta-base")
    vocabulary = build_bert_tokenizer(root / "bert-base-uncased")
    build_chexbert(root / "chexbert" / "chexbert.pth", vocabulary)
    return root


@pytest.fixture(scope="module")
def graph_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("radgraph.allennlp.data")
    torch.manual_seed(3)
    root = tmp_path_factory.mktemp("graph")
    build_radgraph(root / "radgraph" / "radgraph")
    return root


@pytest.fixture
def environment(weights: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENVIRONMENT, str(weights))
    return weights


def test_bertscore_is_one_for_equal_texts(environment: Path) -> None:
    component = BertScore()
    assert component.unavailable() is None
    scores = component.score(SENTENCES, SENTENCES)
    assert scores.values == pytest.approx([1.0] * 3, abs=1e-4)
    assert scores.truncated == []


def test_bertscore_by_hand(environment: Path) -> None:
    """One pair, token by token, from the model's own hidden states."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(environment / "distilroberta-base", add_prefix_space=True)
    model = transformers.AutoModel.from_pretrained(environment / "distilroberta-base").eval()
    sides = []
    for text in SENTENCES[:2]:
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[LAYER][0]
        sides.append([row / row.norm() for row in hidden])
    ref, cand = sides
    precision = sum(max(float(c @ r) for r in ref) for c in cand[1:-1]) / (len(cand) - 2)
    recall = sum(max(float(c @ r) for c in cand) for r in ref[1:-1]) / (len(ref) - 2)
    f1 = 2 * precision * recall / (precision + recall)
    expected = (f1 - BASELINE[2]) / (1 - BASELINE[2])
    assert BertScore().score([SENTENCES[0]], [SENTENCES[1]]).values == pytest.approx([expected], abs=1e-4)


def test_bertscore_agrees_with_the_package_told_of_the_space(environment: Path) -> None:
    package = pytest.importorskip("bert_score")
    scorer = package.BERTScorer(model_type=str(environment / "distilroberta-base"), num_layers=LAYER)
    # Under transformers 5 the package itself loses the space before the first word, and fails without a length.
    scorer._tokenizer = transformers.AutoTokenizer.from_pretrained(
        environment / "distilroberta-base", add_prefix_space=True, model_max_length=512
    )
    candidates = [*SENTENCES[1:], SENTENCES[0]]
    expected = scorer.score(candidates, SENTENCES)[2].tolist()
    ours = [value * (1 - BASELINE[2]) + BASELINE[2] for value in BertScore().score(SENTENCES, candidates).values]
    assert ours == pytest.approx(expected, abs=1e-6)


def test_bertscore_begins_the_first_word_with_a_space(environment: Path) -> None:
    tokenizer, _ = BertScore()._model
    assert tokenizer("effusion")["input_ids"] == tokenizer(" effusion")["input_ids"]


def test_bertscore_collapses_spaces_and_counts_cut_texts(environment: Path) -> None:
    scores = BertScore().score(["pleural   effusion", LONG], ["pleural effusion", "effusion"])
    assert scores.values[0] == pytest.approx(1.0, abs=1e-4)
    assert scores.truncated == [1]


def test_chexbert(environment: Path) -> None:
    component = CheXbert()
    assert component.unavailable() is None
    scores = component.score([*SENTENCES, SENTENCES[0], LONG], [*SENTENCES, SENTENCES[1], SENTENCES[0]])
    assert scores.values[:3] == pytest.approx([1.0] * 3, abs=1e-5)
    assert -1 <= scores.values[3] < 0.9999
    assert scores.truncated == [4]
    assert component.score(["a\n\nb"], ["a b"]).values == pytest.approx([1.0], abs=1e-5)


def test_fingerprints_name_the_weights(environment: Path) -> None:
    for component in (BertScore(), CheXbert()):
        fingerprint = component.fingerprint()
        assert any(key.startswith("sha256:") for key in fingerprint)
        assert fingerprint["package:torch"] == torch.__version__
        assert fingerprint["source"] == ENVIRONMENT


class Evil:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('code in the checkpoint was run')",))


def test_a_checkpoint_with_code_in_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chexbert.pth"
    torch.save({"model_state_dict": Evil()}, path)
    with pytest.raises(DataError, match="not a CheXbert checkpoint"):
        load_encoder(path)
    path.write_bytes(pickle.dumps({"model_state_dict": {}}))
    with pytest.raises(DataError, match="not a CheXbert checkpoint"):
        load_encoder(path)


def test_radgraph_through_the_package(graph_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(graph_weights))
    component = RadGraph()
    assert component.unavailable() is None
    annotated = component.annotate(SENTENCES)
    assert any(annotation.entities for annotation in annotated)
    scores = component.score(SENTENCES, SENTENCES)
    for annotation, value in zip(annotated, scores.values, strict=True):
        assert value == (bool(annotation.entities) + bool(annotation.relations)) / 2
    assert any(key.startswith("encoder:sha256:") for key in component.fingerprint())


def test_radgraph_from_its_archive(graph_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "radgraph").mkdir()
    archive = tmp_path / "radgraph" / "radgraph.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("config.json", "vocabulary", "weights.th"):
            tar.add(graph_weights / "radgraph" / "radgraph" / name, arcname=name)
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    assert "tiny-encoder" in str(RadGraph().unavailable())
    component = RadGraph(encoder=WeightSource(explicit=graph_weights / "tiny-encoder"))
    assert component.unavailable() is None
    monkeypatch.setenv(ENVIRONMENT, str(graph_weights))
    assert component.annotate(SENTENCES) == RadGraph().annotate(SENTENCES)


def test_equal_texts_score_the_same_whatever_the_weights(
    weights: Path, graph_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(weights))
    components = [
        RadGraph(WeightSource(graph_weights / "radgraph" / "radgraph"), WeightSource(graph_weights / "tiny-encoder")),
        BertScore(),
        CheXbert(),
        Bleu2(),
    ]
    result = score_radcliq(SENTENCES, SENTENCES, components)
    assert result.status == "ok"
    expected = {1.0: -1.4406902828047017, 0.5: -0.818082117695542}
    for row in result.rows:
        assert row.components is not None
        assert row.v1 == pytest.approx(expected[row.components.radgraph], abs=1e-3)


MIXED = [*SENTENCES, "Effusion", " ".join(SENTENCES), f"{SENTENCES[2]} {SENTENCES[0]}", LONG]


def one_by_one(component: Any, texts: list[str]) -> list[float]:
    return [component.score([text], [SENTENCES[0]]).values[0] for text in texts]


@pytest.mark.parametrize("budget", [600, 10_000])
def test_batches_change_no_value(
    environment: Path, graph_weights: Path, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("bertscore", "chexbert", "radgraph"):
        monkeypatch.setattr(f"medthink.metrics.radcliq.{module}.token_budget", lambda: budget)
    graphs = RadGraph(
        WeightSource(graph_weights / "radgraph" / "radgraph"), WeightSource(graph_weights / "tiny-encoder")
    )
    for component, texts in ((BertScore(), MIXED), (CheXbert(), MIXED), (graphs, MIXED[:-1])):
        together = component.score(texts, [SENTENCES[0]] * len(texts)).values
        assert together == pytest.approx(one_by_one(component, texts), abs=1e-5)


def test_features_of_a_text_are_made_once(
    environment: Path, graph_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = WeightSource(graph_weights / "radgraph" / "radgraph"), WeightSource(graph_weights / "tiny-encoder")
    makers = {
        "_embed": lambda: CheXbert(features=tmp_path),
        "_annotate_batch": lambda: RadGraph(*sources, features=tmp_path),
    }
    for name, make in makers.items():
        first = make().score(SENTENCES, SENTENCES[::-1])
        again = make()
        asked: list[Any] = []
        original = getattr(again, name)
        monkeypatch.setattr(again, name, lambda texts, *rest, o=original, a=asked: a.extend(texts) or o(texts, *rest))
        assert again.score(SENTENCES, SENTENCES[::-1]) == first and asked == []
        assert len(again.score(["Effusion and process"], SENTENCES[:1]).values) == 1 and len(asked) == 1


def test_the_second_model_costs_bertscore_its_own_texts_alone(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medthink.metrics.radcliq.bertscore._PAIRS_AT_ONCE", 2)
    candidates = [f"{text} Effusion." for text in SENTENCES]
    plain = BertScore().score([*SENTENCES, LONG], [*candidates, LONG])
    first = BertScore(features=tmp_path).score([*SENTENCES, LONG], [*candidates, LONG])
    again = BertScore(features=tmp_path)
    asked: list[str] = []
    told: list[int] = []
    original = again._encode
    monkeypatch.setattr(again, "_encode", lambda texts, tell: asked.extend(texts) or original(texts, tell))
    second = again.score([*SENTENCES, LONG], [*candidates, LONG], told.append)
    assert second.values == pytest.approx(first.values, abs=1e-6) and second.truncated == first.truncated
    assert plain.values == pytest.approx(first.values, abs=1e-5)
    assert set(asked) == {text.strip() for text in candidates}
    assert sum(told) == len({*SENTENCES, LONG, *candidates})


def test_progress_counts_every_text_of_every_component(environment: Path, tmp_path: Path) -> None:
    told: list[int] = []
    component = CheXbert(features=tmp_path)
    for _ in range(2):
        component.score(SENTENCES, SENTENCES[::-1], told.append)
    assert sum(told) == 2 * len(SENTENCES)
