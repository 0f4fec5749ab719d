"""Import the packages that take longest to compile, so that the tests find them compiled; a missing one is left out."""

import contextlib
import importlib

HEAVY = (
    "torch",
    "transformers.models.bert.modeling_bert",
    "transformers.models.idefics3.modeling_idefics3",
    "transformers.models.roberta.modeling_roberta",
    "radgraph",
    "ray",
    "inspect_ai",
    "anthropic",
    "openai",
    "google.genai",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "statsmodels.api",
    "matplotlib.figure",
    "pandas",
    "rapidocr",
    "playwright.sync_api",
    "mkdocs.commands.build",
)

for name in HEAVY:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
