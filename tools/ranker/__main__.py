"""Learn what recall weighs, and the chances of what it finds: `firnline.recall.weights`.

    python tools/ranker chats.json tests/support/evidence_chats.json [--write]

All files are in the format of LoCoMo: a list of conversations, each with ``session_N``,
``session_N_date_time`` and ``qa``, where a question has ``evidence`` (ids of turns) and a
``category`` (5, adversarial, is left out). Bring your own copy of the first; nothing of it is kept
here. Weights are learned on the first file (``train``), then chances on all of them
(``calibrate``). Needs the extra ``firnline[recall]``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from calibrate import calibrate
from train import learn_all, write

from firnline.embedding import MiniLM
from firnline.recall import weights


def main(arguments: Sequence[str]) -> None:
    """Learn, and print how well it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("chats", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    read = [json.loads(path.read_text(encoding="utf-8")) for path in given.chats]
    embedder = MiniLM()

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    tables = learn_all(read[0], embedder, say)
    for mode, table in tables.items():
        setattr(weights, mode, table)
    tables |= calibrate([chat for chats in read for chat in chats], embedder, say)
    if given.write:
        write(tables)


if __name__ == "__main__":
    main(sys.argv[1:])
