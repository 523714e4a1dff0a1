"""Three hundred texts that try to run code, to navigate away, or to reverse the page."""

import json
from pathlib import Path

RUN = "window.__pwned=1"
AWAY = "//evil.example/x"

_KINDS = json.loads(Path(__file__).with_suffix(".json").read_text())
PAYLOADS = [text.format(run=RUN, away=AWAY) for texts in _KINDS.values() for text in texts]
