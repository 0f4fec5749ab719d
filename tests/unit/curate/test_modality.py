"""Modality: from the source, the caption, the siblings or a model, and marked by which."""

import json

import pytest
from msgspec.structs import replace

from drafts import draft, rule, try_stage
from judge_server import JudgeServer
from medthink.cases.case import MODALITIES, Image, ImageReference
from medthink.cases.images.stores import FolderImages
from medthink.curate.draft import Draft
from medthink.curate.stages.modality import _table, modality_of, sub_modality_of
from small_benchmark import picture

NUCLEAR = "Nuclear medicine & Molecular imaging"
CAPTIONS = {
    "Axial CT of the neck shows an air-filled lesion.": ("CT", "Other_CT"),
    "HRCT of the chest shows honeycombing.": ("CT", "HRCT / Thin-slice CT"),
    "Lung window: a nodule in the left upper lobe.": ("CT", "Other_CT"),
    "Coronal T2-weighted image.": ("MRI", "Conventional MRI"),
    "The lesion is hyperintense.": ("MRI", "Conventional MRI"),
    "MR angiography of the circle of Willis.": ("MRI", "Other_MRI"),
    "PET/CT shows avid uptake.": (NUCLEAR, "Other_Nuclear"),
    "Tc-99m bone scan.": (NUCLEAR, "Other_Nuclear"),
    "Frontal chest radiograph.": ("X-ray", "Plain radiograph"),
    "Craniocaudal mammogram.": ("X-ray", "Mammography"),
    "Barium swallow.": ("X-ray", "Fluoroscopy"),
    "DSA of the left internal carotid artery.": ("X-ray", "Catheter angiography/DSA"),
    "Transabdominal ultrasound.": ("Ultrasound", "B-mode ultrasound"),
    "Colour Doppler of the mass.": ("Ultrasound", "Other_Ultrasound"),
    "A hypoechoic nodule with posterior shadowing.": ("Ultrasound", "B-mode ultrasound"),
    "Photomicrograph (H&E).": ("Pathology", "Other_Pathology"),
    "Clinical photograph of the foot.": ("Clinical photography", "Other_Photography"),
    "Colonoscopy shows an ulcer.": ("Endoscopy", "Other_Endoscopy"),
    "Schematic drawing of the fistula.": ("Non-modality / Workflow / Post-processing", "Other_Nonmodality"),
    "CT performed after an MRI.": ("CT", "Other_CT"),
    "Enhancement as seen on CT is confirmed; this MRI shows it best.": ("MRI", "Conventional MRI"),
}
SILENT = (
    "A mass in the left adrenal gland.",
    "Fracture of the T1 vertebra.",
    "Levels T1-T5.",
    "Let us look at Mr Smith.",
    "Ultrasound and MRI images of the breast.",
    "Hypointense with low attenuation.",
    "",
)


@pytest.mark.parametrize(("caption", "due"), CAPTIONS.items())
def test_a_caption_that_names_its_modality_decides(caption, due):
    found = modality_of(caption)
    assert found is not None
    assert (found.modality, sub_modality_of(found.modality, caption)) == due
    assert found.modality in MODALITIES and caption[found.start : found.end]


@pytest.mark.parametrize("caption", SILENT)
def test_a_caption_that_names_none_or_two_decides_nothing(caption):
    assert modality_of(caption) is None


def test_the_table_knows_the_nine_and_no_other():
    assert {one.name for one in _table().modality} == set(MODALITIES)
    assert {one.modality for one in _table().finer} <= set(MODALITIES)


@pytest.fixture
def make(tmp_path):
    """A draft with captions, and modalities that the source gives."""
    store = FolderImages(tmp_path / "work/cases")

    def made(number: int, *captions: str, given: dict[int, str] | None = None) -> Draft:
        images, references = [], []
        for slot, caption in enumerate(captions, start=1):
            path = f"images/case{number:05d}/{slot}.jpg"
            (tmp_path / "work/cases" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "work/cases" / path).write_bytes(picture(number * 100 + slot))
            images.append(Image(slot, str(slot), path, store))
            references.append(ImageReference(caption, (given or {}).get(slot, ""), ""))
        one = draft(number).with_question(images=tuple(images)).with_reference(images=tuple(references))
        return Draft(replace(one.case, image_count=len(captions)), one.notes)

    return made


def modalities(one: Draft) -> list[str]:
    return [image.modality for image in one.case.reference.images]


class TestStage:
    def test_source_caption_and_siblings_in_this_order(self, tmp_path, make):
        one = make(1, "A nodule.", "An MRI.", "Axial CT.", given={1: "CT", 2: "CT"})
        trial = try_stage("modality", tmp_path, [one])
        assert modalities(trial.kept[1]) == ["CT", "CT", "CT"]  # the second against its caption: the source knows
        assert trial.kept[1].notes.marks["modality"] == {"1": "the source", "2": "the source", "3": "rule caption"}
        quote = trial.decisions[1].evidence[0]
        assert (quote.field, quote.text) == ("image_03_caption", "CT")

    def test_an_image_that_nothing_speaks_of_takes_what_all_siblings_have_and_says_so(self, tmp_path, make):
        trial = try_stage("modality", tmp_path, [make(1, "Axial CT.", "A nodule.")])
        assert modalities(trial.kept[1]) == ["CT", "CT"]
        assert trial.kept[1].notes.marks["modality"]["2"] == "inferred from siblings"

    def test_siblings_that_differ_say_nothing(self, tmp_path, make):
        drafts = [make(1, "Axial CT.", "An MRI.", "A nodule."), make(2, "A nodule.")]
        trial = try_stage("modality", tmp_path, drafts, unknown="hold")
        assert trial.kept == {} and trial.decisions[1].proposal == "CT"
        assert trial.decisions[1].reason == trial.decisions[2].reason == "modality-unknown"
        assert "image slots 3" in trial.decisions[1].detail and trial.stage.not_covered()
        one = make(3, "Axial CT.", "A nodule.")
        alone = try_stage("modality", tmp_path / "b", [one], infer_from_case=False, unknown="hold")
        assert alone.end.counts.undecided == 1

    def test_an_image_that_nothing_tells_about_is_unknown_and_counted(self, tmp_path, make):
        trial = try_stage("modality", tmp_path, [make(1, "Axial CT.", "An MRI.", "A nodule.")])
        assert modalities(trial.kept[1]) == ["CT", "MRI", "unknown"]
        assert trial.kept[1].case.reference.images[2].sub_modality == ""
        assert trial.end.counts.reasons == {"changed": {"modality-unknown": 1}}

    def test_a_case_without_images_passes_untouched(self, tmp_path):
        trial = try_stage("modality", tmp_path, [draft(1)])
        assert trial.decisions[1].verdict == "in" and trial.decisions[1].reason == "no-image"

    def test_a_model_looks_at_what_is_left_and_a_failed_call_leaves_the_case_open(self, tmp_path, make):
        def answer(nonce, data, outside):
            told = "cannot tell" if data["caption"] == "Unclear." else "Ultrasound"
            return json.dumps({"call": nonce, "modality": told})

        drafts = [
            make(1, "Axial CT.", "An MRI.", "A nodule."), make(2, "Unclear."), make(3, "A cyst."), make(4, "A CT.")
        ]  # fmt: skip
        with JudgeServer(answer) as server:
            server.fails = lambda body: "A cyst." in json.dumps(body)
            trial = try_stage("modality", tmp_path, drafts, model="server/m", base_url=(server.url,))
            sent = [part for body in server.bodies for part in body["messages"][-1]["content"]]
        assert modalities(trial.kept[1]) == ["CT", "MRI", "Ultrasound"]
        assert trial.kept[1].notes.marks["modality"]["3"] == "model server/m"
        assert [trial.decisions[n].reason for n in (2, 3, 4)] == ["modality-unknown", "call-failed", "labelled"]
        assert any(part["type"] == "image_url" for part in sent)  # it is shown the picture

    def test_a_person_names_one_for_all_or_one_for_each(self, tmp_path, make):
        one = make(1, "Axial CT.", "A nodule.", "A cyst.", "An MRI.")
        told = {
            "MRI": ["CT", "MRI", "MRI", "MRI"],
            "2=CT; 3 = Ultrasound": ["CT", "CT", "Ultrasound", "MRI"],
            "2=MRI": None, "2=MRI; 3=Scan": None, "scan": None, "2=MRI; 3=CT; 4=CT": None,
        }  # fmt: skip
        for number, (value, labels) in enumerate(told.items()):
            rule(try_stage("modality", tmp_path / str(number), [one], unknown="hold"), value=value)
            again = try_stage("modality", tmp_path / str(number), [one], unknown="hold")
            if labels is None:
                assert "does not name the modality of image slots 2, 3" in again.decisions[1].odd
            else:
                assert modalities(again.kept[1]) == labels

    def test_a_ruling_leaves_the_slots_alone_that_a_model_settled(self, tmp_path, make):
        def answer(nonce, data, outside):
            return json.dumps({"call": nonce, "modality": "CT" if data["slot"] == 2 else "cannot tell"})

        one = make(1, "An MRI.", "A nodule.", "A cyst.")
        with JudgeServer(answer) as server:
            settings = {"model": "server/m", "base_url": (server.url,), "infer_from_case": False, "unknown": "hold"}
            rule(try_stage("modality", tmp_path, [one], **settings), value="3=Ultrasound")
            again = try_stage("modality", tmp_path, [one], **settings)
        assert modalities(again.kept[1]) == ["MRI", "CT", "Ultrasound"]
