"""Lists the models whose window in the table differs from a newer source, and those it lacks.

    python tools/models/compare.py model_prices_and_context_window.json

The source is the file of litellm (MIT): models by name, with `max_input_tokens`. Providers of one
model may differ, so a window that one of them states is taken as right. Decide on each line, edit
``src/firnline/log/models.txt``, and set its date.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from firnline.log.model_table import find_model

MODES = frozenset({"chat", "responses"})
NEAR = 0.08  # 128,000 and 131,072 are the same


def windows(models: Mapping[str, Mapping[str, object]]) -> dict[str, Counter[int]]:
    """What providers state of each model, by its name without their prefix."""
    found: dict[str, Counter[int]] = {}
    for name, facts in models.items():
        tokens = facts.get("max_input_tokens") or facts.get("max_tokens")
        if facts.get("mode") in MODES and isinstance(tokens, int) and tokens > 0:
            found.setdefault(name.rsplit("/", 1)[-1].lower(), Counter())[tokens] += 1
    return found


def main(file: str) -> None:
    """Print what differs."""
    say = sys.stdout.write
    stated = windows(json.loads(Path(file).read_text("utf-8")))
    unknown = []
    for name, counts in sorted(stated.items()):
        ours = find_model(name).window_tokens
        if ours is None:
            unknown.append(name)
        elif not any(abs(ours - tokens) <= NEAR * tokens for tokens in counts):
            theirs = ", ".join(f"{tokens:,} ({count})" for tokens, count in counts.most_common())
            say(f"{name}: {ours:,} here, {theirs} there\n")
    say(f"unknown: {', '.join(unknown) or 'none'}\n")
    say(f"{len(stated):,} models compared\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
