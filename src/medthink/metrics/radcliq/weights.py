"""Sources of weights: a given path, the environment, the hub's cache, or, only on request, the hub.

`MEDTHINK_WEIGHTS` names a folder laid out as

    distilroberta-base/   config.json, tokenizer files, model.safetensors
    bert-base-uncased/    config.json and tokenizer files
    chexbert/chexbert.pth
    radgraph/radgraph/    config.json, vocabulary/, weights.th     (or radgraph/radgraph.tar.gz)
    <name of RadGraph's base encoder>/   config.json and tokenizer files

Nothing is fetched unless `online` is set, and nothing is ever unpickled.
"""

import hashlib
import os
import tarfile
from functools import cache
from pathlib import Path

import msgspec

from medthink.core.errors import DataError, OutsideError

ENVIRONMENT = "MEDTHINK_WEIGHTS"
SCORERS_REPO = "StanfordAIMI/RRG_scorers"
_MODEL_FILES = ("*.json", "*.txt", "*.safetensors")


class FoundWeights(msgspec.Struct, frozen=True):
    """Weights on this machine, and how they were found."""

    path: Path
    source: str


class MissingWeights(msgspec.Struct, frozen=True):
    """Weights that are not on this machine, and why."""

    reason: str


class WeightSource(msgspec.Struct, frozen=True):
    """Where to look for weights: one path, a folder laid out as above, the environment, the hub."""

    explicit: Path | None = None
    folder: Path | None = None
    online: bool = False
    revision: str = "main"

    def find_model(self, repo: str) -> FoundWeights | MissingWeights:
        """A folder with a model's config, tokenizer and safe weights."""
        return self._find_local(Path(repo.split("/")[-1])) or self._find_on_hub(repo, None)

    def find_scorer_file(self, local: Path, filename: str) -> FoundWeights | MissingWeights:
        """One file of the scorers' repository."""
        return self._find_local(local) or self._find_on_hub(SCORERS_REPO, filename)

    def _find_local(self, relative: Path) -> FoundWeights | None:
        if self.explicit is not None:
            if not self.explicit.exists():
                raise DataError("no such weights", file=self.explicit, remedy="check the path given for the weights")
            return FoundWeights(self.explicit, "path given")
        for folder, source in ((self.folder, "folder given"), (os.environ.get(ENVIRONMENT), ENVIRONMENT)):
            if folder and (Path(folder) / relative).exists():
                return FoundWeights(Path(folder) / relative, source)
        return None

    def _find_on_hub(self, repo: str, filename: str | None) -> FoundWeights | MissingWeights:
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            return FoundWeights(_fetch(repo, filename, revision=self.revision, online=False), "hub cache")
        except LocalEntryNotFoundError:
            pass
        if not self.online:
            wanted = f"{repo}/{filename}" if filename else repo
            return MissingWeights(f"weights of {wanted} are neither in {ENVIRONMENT} nor in the hub cache")
        return FoundWeights(self._download(repo, filename), f"hub, revision {self.revision}")

    def _download(self, repo: str, filename: str | None) -> Path:
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

        try:
            return _fetch(repo, filename, revision=self.revision, online=True)
        except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
            problem = f"{repo} could not be downloaded: {error}"
            raise OutsideError(problem, remedy=f"try again, or put the files under {ENVIRONMENT}") from None


def _fetch(repo: str, filename: str | None, *, revision: str, online: bool) -> Path:
    from huggingface_hub import hf_hub_download, snapshot_download

    if filename:
        return Path(hf_hub_download(repo, filename, revision=revision, local_files_only=not online))
    found = snapshot_download(repo, revision=revision, allow_patterns=list(_MODEL_FILES), local_files_only=not online)
    return Path(found)


def digest_weights(path: Path) -> dict[str, str]:
    """SHA-256 of a file, or of every file of a folder, by name."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {f"sha256:{_name(file, path)}": _digest_file(file) for file in files}


def _name(file: Path, root: Path) -> str:
    return file.name if file == root else file.relative_to(root).as_posix()


def _digest_file(path: Path) -> str:
    found = path.stat()
    return _digest_once(path, found.st_size, found.st_mtime_ns)


@cache
def _digest_once(path: Path, size: int, changed_at: int) -> str:  # noqa: ARG001 - a file that changed is read again
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def extract_archive(archive: Path, folder: Path) -> None:
    """Unpack an archive of weights; links, devices and paths outside the folder are refused."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(archive, "r:gz") as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise DataError(f"cannot be unpacked: {error}", file=archive, remedy="download the archive again") from None


def find_weights() -> dict[str, str | None]:
    """Which of RadCliQ's weights are on this machine, by component; nothing is downloaded."""
    source = WeightSource()
    looked_for = {
        "BERTScore": source.find_model("distilroberta-base"),
        "CheXbert tokenizer": source.find_model("bert-base-uncased"),
        "CheXbert": source.find_scorer_file(Path("chexbert/chexbert.pth"), "chexbert.pth"),
        "RadGraph": source.find_scorer_file(Path("radgraph/radgraph"), "radgraph.tar.gz"),
    }
    return {name: str(found.path) if isinstance(found, FoundWeights) else None for name, found in looked_for.items()}
