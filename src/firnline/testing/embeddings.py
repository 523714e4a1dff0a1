"""What `ModelServer` answers about embeddings, and how each fault spoils it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from firnline.embedding.words import WordVectors

EMBEDDING_FAULTS: Final[Mapping[str, str]] = {
    "wrong_count": "one vector is missing",
    "not_finite": "a vector has a NaN",
    "not_numbers": "a vector has text in it",
    "wrong_dimension": "a vector has one number less than the others",
    "wrong_index": "two vectors have the same index",
    "no_data": "an object without vectors",
    "unordered": "the vectors come in another order; their indexes say in which",
}
"""What only embeddings can have, by name. `unordered` is none: a client must put up with it."""


def embeddings_complaint(request: Mapping[str, Any]) -> str | None:
    """Why a real endpoint would refuse the request, None if it would not."""
    given = request.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        return "input: expected a text or a list of texts"
    return None if all(texts) else "input: cannot be an empty string"


def embeddings_answer(request: Mapping[str, Any], model: str, fault: str | None) -> bytes:
    """The body of the answer: vectors made of the texts' own words, as the fault leaves them."""
    texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
    vectors = WordVectors()
    rows: list[dict[str, Any]] = [
        {"object": "embedding", "index": index, "embedding": list(vectors(text))}
        for index, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    answer = {"object": "list", "data": rows, "model": model, "usage": usage}
    _spoil(answer, rows, fault)
    return json.dumps(answer).encode()


def _spoil(answer: dict[str, Any], rows: list[dict[str, Any]], fault: str | None) -> None:
    match fault:
        case "wrong_count":
            del rows[-1]
        case "not_finite":
            rows[-1]["embedding"][0] = float("nan")
        case "not_numbers":
            rows[-1]["embedding"][0] = "0.5"
        case "wrong_dimension":
            del rows[-1]["embedding"][-1]
        case "wrong_index":
            rows[-1]["index"] = len(rows) - 2
        case "no_data":
            del answer["data"]
        case "unordered":
            rows.reverse()
        case _:
            return
