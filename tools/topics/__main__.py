"""Learn what the signs of `firnline.topics.flow` weigh: `firnline.topics.weights`.

    python tools/topics [--write]

The chats are in ``tests/support/gold_topics``: those of the part ``tune`` are learned from, those
of ``test`` are only measured. Printed are the scores of chats that were left out in turn, and those
of the part ``test``. Needs the extras ``firnline[recall,multilingual]``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from chats import embed_all
from train import center_of, learn, left_out, report, write

from firnline.embedding import open_embedder
from support.topic_scores import gold_chats

EMBEDDERS = {"minilm": ("en",), "multilingual": ()}
"""The embedders, and the languages that each is for; none: all."""


def main() -> None:
    """Learn, and print how well it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    learned = {}
    for name, languages in EMBEDDERS.items():
        embedder = open_embedder(name)
        chats = gold_chats("tune", *languages)
        vectors = embed_all(embedder, chats + gold_chats("test", *languages))
        center = center_of(chats, vectors) if name == "multilingual" else None
        report(f"{name}, left out in turn", left_out(chats, vectors, center))
        flow = learn(chats, vectors, center)
        report(
            f"{name}, test", [(c, flow.scores(c, vectors)) for c in gold_chats("test", *languages)]
        )
        learned[embedder.name] = flow
    if given.write:
        write(learned)


if __name__ == "__main__":
    main()
