"""The embeddings that `ModelServer` returns, and how each fault changes them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from firnline.embedding.words import WordVectors

EMBEDDING_FAULTS: Final[Mapping[str, str]] = {
    "wrong_count": "one vector is missing",
    "not_finite": "a vector has a NaN",
    "not_numbers": "a vector contains text",
    "wrong_dimension": "a vector has one number fewer than the others",
    "wrong_index": "two vectors have the same index",
    "no_data": "a body without vectors",
    "unordered": "the vectors are in another order, given by their indexes",
}
"""Faults of embeddings only, by name. `unordered` is valid: clients must handle it."""


def embeddings_complaint(request: Mapping[str, Any]) -> str | None:
    """The reason why a real endpoint would reject the request, or None."""
    given = request.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        return "input: expected a string or a list of strings"
    return None if all(texts) else "input: cannot be an empty string"


def embeddings_answer(request: Mapping[str, Any], model: str, fault: str | None) -> bytes:
    """The body of the answer: vectors from the words of the texts, changed by the fault."""
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
