"""Every defect that `medthink data check` can find, as data; docs/checks.md documents this table."""

from typing import Literal

import msgspec

Severity = Literal["error", "warning"]


class Defect(msgspec.Struct, frozen=True):
    """A kind of defect: what it means, and what to do about it."""

    code: str
    severity: Severity
    meaning: str
    remedy: str
    needs_pixels: bool = False


_TABLE = (
    Defect(
        "row-unreadable", "error", "the row is not a case: bad JSON, a missing or mistyped field", "correct the row"
    ),
    Defect(
        "forms-differ",
        "error",
        "a split exists both as JSON Lines and as parquet, and the two differ",
        "regenerate one from the other",
    ),
    Defect("id-duplicate", "error", "two rows have the same case number", "keep one, or renumber"),
    Defect("history-empty", "error", "the clinical history is empty", "fill it in or drop the case"),
    Defect("image-count-wrong", "error", "image_count is not the number of filled slots", "correct image_count"),
    Defect("slot-gap", "error", "an empty image slot comes before a filled one", "close the gap"),
    Defect(
        "image-column-unknown",
        "error",
        "a column looks like an image slot but is not one, so its content is not read",
        "write slots with two digits, image_01_ to image_49_",
    ),
    Defect("image-none", "error", "the case has no image", "add its images or drop the case"),
    Defect(
        "image-path-unsafe",
        "error",
        "the path of a slot, a file or a zip's member leaves the benchmark: '..', absolute, a URL, a link, NUL",
        "use a plain path inside the benchmark",
    ),
    Defect(
        "image-path-disagrees",
        "error",
        "the path is not images/case<number>/<id>.* with the title's number and the slot's id",
        "rename the file or correct path, id or title",
    ),
    Defect("image-file-missing", "error", "a slot names a file that is missing", "restore the file"),
    Defect("image-path-repeated", "error", "two slots name the same file", "give each slot its own image"),
    Defect("options-not-five", "error", "the options are not exactly A to E", "give five options, A to E"),
    Defect("option-empty", "error", "an option has no text", "fill it in or drop the case"),
    Defect(
        "options-not-distinct",
        "error",
        "two options have the same text except for case, spaces, invisible characters or a final dot",
        "replace one of them",
    ),
    Defect("answer-not-an-option", "error", "correct_answer is not a letter of the options", "correct the letter"),
    Defect(
        "answer-text-differs",
        "error",
        "correct_answer_text is not the text of the correct option",
        "correct the letter or the text",
    ),
    Defect("modality-unknown", "error", "a level-1 modality is not one of the nine", "use one of the nine names"),
    Defect("icd-malformed", "error", "an ICD label does not have its level's form", "write code and title as shown"),
    Defect("icd-unknown", "error", "an ICD code does not exist at its level in WHO 2019", "correct the code"),
    Defect("icd-contradiction", "error", "the ICD levels are not nested", "correct the wrong level"),
    Defect(
        "longitudinal-contradiction",
        "error",
        "is_longitudinal, timepoint_count (two or more) and interval_text (not empty) disagree",
        "make the three fields agree",
    ),
    Defect(
        "history-duplicate-across-splits",
        "error",
        "a history is nearly identical to one of another split",
        "keep the case in one split only",
    ),
    Defect("image-unreadable", "error", "the file cannot be read", "check the file and its permissions", True),
    Defect("image-format-refused", "error", "the content is neither JPEG nor PNG", "convert the file", True),
    Defect(
        "image-truncated",
        "error",
        "the image file is truncated or its structure is damaged",
        "copy or download it again",
        True,
    ),
    Defect("image-undecodable", "error", "the picture cannot be decoded", "replace the file", True),
    Defect("image-too-large", "error", "the picture has over 50 megapixels", "scale it down", True),
    Defect(
        "image-duplicate-across-splits",
        "error",
        "the same picture (by pixels) is in two splits",
        "keep the picture in one split only",
        True,
    ),
    Defect(
        "image-file-extra",
        "warning",
        "a file under the image folder belongs to no slot of any split",
        "remove it, or reference it in a slot",
    ),
    Defect("reference-empty", "warning", "a withheld text is empty: caption, findings, discussion", "fill it in"),
    Defect(
        "discussion-unsectioned",
        "warning",
        "discussions have none of the six sections' headings, so they are scored as whole texts only",
        "add the headings, or report whole-text scores",
    ),
    Defect("modality-not-stated", "warning", 'a level-1 modality is "unknown"', "write which of the nine it is"),
    Defect(
        "caption-repeated",
        "warning",
        "all images of a case have the same caption, so it describes none of them in particular",
        "write a caption for each image, or leave step 1 unscored",
    ),
    Defect(
        "timepoints-exceed-images",
        "warning",
        "the case has more timepoints than images",
        "correct timepoint_count, or add the images",
    ),
    Defect(
        "history-duplicate-in-split",
        "warning",
        "two cases of a split have the same history",
        "check that they are two cases",
    ),
    Defect("icd-missing", "warning", "an ICD label is empty", "fill it in, or leave ICD slices out"),
    Defect("icd-title-differs", "warning", "an ICD title is not the WHO title of its code", "use the WHO title"),
    Defect(
        "answer-in-history",
        "warning",
        "the history contains the text of the correct option, or its plural",
        "rewrite the history or drop the case",
    ),
    Defect(
        "letters-skewed",
        "warning",
        "one letter is right more often than chance allows (binomial test, five letters, p < 0.01)",
        "shuffle the options, or report the constant-letter baseline",
    ),
    Defect(
        "longest-option-right",
        "warning",
        "the longest option is right more often than chance allows (binomial test, p < 0.01)",
        "even out the option lengths, or report the longest-option baseline",
    ),
    Defect(
        "image-look-alike",
        "warning",
        "a picture is the same as one of another case except for borders or compression",
        "check that both cases should show it, and that they are in one split",
        True,
    ),
    Defect("image-blank", "warning", "the picture has only one colour", "replace it or drop the slot", True),
    Defect("image-tiny", "warning", "a side of the picture has fewer than 8 pixels", "replace it", True),
    Defect(
        "image-zeroed",
        "warning",
        "a JPEG has a long run of zero bytes, like a damaged copy",
        "inspect it, or copy it again",
        True,
    ),
    Defect("image-format-differs", "warning", "the content does not match the file extension", "rename it", True),
    Defect("image-alpha", "warning", "parts of the picture are transparent", "flatten it over black", True),
    Defect(
        "image-metadata",
        "warning",
        "the file carries EXIF, comments, text or trailing bytes, which may identify a person",
        "strip it; `as_shown` does so before sending",
        True,
    ),
    Defect(
        "image-duplicate-in-case",
        "warning",
        "the same picture (by pixels) occurs twice in one case",
        "drop one of the slots",
        True,
    ),
    Defect(
        "image-duplicate-across-cases",
        "warning",
        "the same picture (by pixels) is in two cases of a split",
        "check that both cases should show it",
        True,
    ),
)

DEFECTS: dict[str, Defect] = {defect.code: defect for defect in _TABLE}
