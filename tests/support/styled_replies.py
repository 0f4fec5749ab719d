"""Replies in the styles of today's models, each with the letter that a careful person reads in it, or none.

`REPLIES` is what the rules were written on. `HELD_OUT` was written, and its letters set by hand, before the rules were
last worked on; they were run on it once, when they were done.
"""

from pathlib import Path
from typing import Any

from medthink.core.jsonio import read_jsonl

OPTIONS = {
    "chest": ("Sarcoidosis", "Pulmonary tuberculosis", "Lymphoma", "Silicosis", "Metastatic disease"),
    "zhchest": ("结节病", "肺结核", "淋巴瘤", "矽肺", "转移瘤"),
    "jachest": ("サルコイドーシス", "肺結核", "リンパ腫", "珪肺", "転移性腫瘍"),
    "dechest": ("Sarkoidose", "Tuberkulose", "Lymphom", "Silikose", "Metastasen"),
    "sella": (
        "Meningioma",
        "Pituitary macroadenoma",
        "Craniopharyngioma",
        "Rathke cleft cyst",
        "Germ cell tumour (germinoma)",
    ),
    "bone": (
        "Osteosarcoma",
        "Ewing sarcoma",
        "Chronic osteomyelitis",
        "Giant cell tumour",
        "Aneurysmal bone cyst",
    ),
    "liver": (
        "Hepatocellular carcinoma",
        "Focal nodular hyperplasia",
        "Hepatic adenoma",
        "Haemangioma",
        "Cholangiocarcinoma",
    ),
    "brain": ("Meningioma", "Atypical meningioma", "Vestibular schwannoma", "Schwannoma", "Epidermoid cyst"),
    "colon": (
        "Crohn's disease",
        "C. difficile colitis",
        "Ischaemic colitis",
        "E. coli enteritis",
        "Ulcerative colitis",
    ),
    "letters": ("Hepatitis B", "B-cell lymphoma", "C-spine fracture", "Hepatitis C", "Vitamin D deficiency"),
    "stage": (
        "Type A aortic dissection",
        "Type B aortic dissection",
        "Aortic aneurysm",
        "Intramural haematoma",
        "Penetrating aortic ulcer",
    ),
    "renal": (
        "Renal cell carcinoma, clear cell",
        "Oncocytoma",
        "Angiomyolipoma (lipid-poor)",
        "Papillary renal cell carcinoma",
        "Lymphoma of the kidney",
    ),
    "knee": (
        "Anterior cruciate ligament tear",
        "Segond fracture",
        "Posterior cruciate ligament avulsion",
        "Tibial plateau fracture",
        "Patellar dislocation",
    ),
    "four": ("Acute appendicitis", "Crohn disease", "Meckel diverticulitis", "Caecal carcinoma"),
    "six": (
        "Glioblastoma",
        "Brain abscess",
        "Tumefactive demyelination",
        "Primary CNS lymphoma",
        "Metastasis",
        "Radiation necrosis",
    ),
    "abdomen": (
        "Acute pancreatitis",
        "Perforated duodenal ulcer",
        "Emphysematous cholecystitis",
        "Gallstone ileus",
        "Small bowel volvulus",
    ),
    "lung": (
        "Organising pneumonia",
        "Granulomatosis with polyangiitis",
        "Invasive mucinous adenocarcinoma",
        "Eosinophilic pneumonia",
        "Pulmonary alveolar proteinosis",
    ),
    "vasc": (
        "Moyamoya disease",
        "Reversible cerebral vasoconstriction syndrome",
        "CNS vasculitis",
        "Fibromuscular dysplasia",
        "Intracranial atherosclerosis",
    ),
    "spine": ("Spondylodiscitis", "Spinal tuberculosis", "Metastasis", "Multiple myeloma", "Vertebral haemangioma"),
    "paed": (
        "Wilms tumour",
        "Neuroblastoma",
        "Mesoblastic nephroma",
        "Multilocular cystic nephroma",
        "Clear cell sarcoma of the kidney",
        "Rhabdoid tumour",
    ),
    "breast": ("Fibroadenoma", "Phyllodes tumour", "Invasive ductal carcinoma", "Breast abscess"),
    "eight": (
        "Adenoid cystic carcinoma",
        "Pleomorphic adenoma",
        "Warthin tumour",
        "Mucoepidermoid carcinoma",
        "Lymphoma",
        "Metastasis",
        "Sialadenitis",
        "Branchial cleft cyst",
    ),
    "zhlung": ("机化性肺炎", "肉芽肿性多血管炎", "浸润性黏液腺癌", "嗜酸性粒细胞性肺炎", "肺泡蛋白沉积症"),
    "jabrain": ("膠芽腫", "脳膿瘍", "転移性脳腫瘍", "悪性リンパ腫", "放射線壊死"),
    "kobowel": ("크론병", "궤양성 대장염", "장결핵", "베체트병", "림프종"),
    "despine": (
        "Spondylodiszitis",
        "Wirbelkörpermetastase",
        "Osteoporotische Fraktur",
        "Multiples Myelom",
        "Hämangiom",
    ),
    "frabdo": (
        "Pancréatite aiguë",
        "Ulcère perforé",
        "Cholécystite emphysémateuse",
        "Iléus biliaire",
        "Volvulus du grêle",
    ),
    "esliver": ("Quiste hidatídico", "Absceso hepático", "Cistoadenoma", "Metástasis", "Hemangioma"),
    "rulung": ("Саркоидоз", "Туберкулёз", "Лимфома", "Силикоз", "Метастазы"),
}


def _rows(name: str) -> list[dict[str, Any]]:
    return [line.value for line in read_jsonl(Path(__file__).parents[1] / "unit/workflow" / name)]


REPLIES = _rows("replies_by_style.jsonl")
HELD_OUT = _rows("replies_held_out.jsonl")


def options_of(row: dict[str, Any]) -> dict[str, str]:
    return dict(zip("ABCDEFGH", OPTIONS[row["options"]], strict=False))
