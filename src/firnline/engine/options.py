"""The options of a memory, all optional."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from firnline.context.plan import Strategy
from firnline.errors import InputError
from firnline.models import Breaker, Spend
from firnline.models.model_like import ModelLike
from firnline.protocols import Embedder, Extractor, Observer, Summarizer
from firnline.topics import Rules


class MemoryOptions(TypedDict, total=False):
    """The options of `Memory` and `Memory.open`."""

    tenant: str
    """The tenant that owns the conversations."""
    strategy: Strategy | str
    """Plans contexts of conversations without their own strategy; default `layered`.

    One of `strategies`, or its name."""
    strategies: Sequence[Strategy]
    """Custom strategies that conversations may use."""
    model: ModelLike | None
    """Writes digests and answers turns; closed with the memory. None is the offline mode."""
    tokens_of: str
    """The model whose tokens are counted, if it differs from `model`."""
    windows: Mapping[str, int]
    """The windows in tokens of models that the table does not know, such as deployments, by name;
    these come before the table's."""
    summarizer: Summarizer
    """Replaces the model's or the offline one."""
    extractor: Extractor
    """Replaces the model's or the offline one."""
    background: bool
    """Whether a worker creates the digests, so that contexts never wait for them.

    By default the strategy decides: contexts of `layered` and `rolling` wait for none."""
    worker: bool
    """Whether a worker may run in this process; otherwise use ``firnline worker``."""
    spend: Spend
    """Limits the calls and tokens of digests."""
    breaker: Breaker
    """Pauses calls to a failing model."""
    lease_seconds: float
    """After how many seconds another worker takes over a digest."""
    embedder: Embedder | str | None
    """Finds entries by their meaning: ``"auto"`` (the default) is the packaged model if the extra
    ``firnline[recall]`` is installed; a name is for `open_embedder`; None is search by words."""
    topic_rules: Rules
    """When messages join a topic, and how topics fade."""
    signer: str | None
    """The key that signs checkpoints, as ``firnline signing-key`` wrote it; extra ``proof``."""
    log_origin: str
    """How the names of logs begin in checkpoints, ``firnline`` by default: a URL of yours without
    its scheme, such as ``example.com/memory``. Checkpoints of two names are of two logs."""
    observer: Observer
    """Receives events as they happen, for metrics."""


def check_names(given: Iterable[str], known: Any, what: str = "option") -> None:
    """Raise `InputError` for a name that is not in the `TypedDict` `known`.

    A misspelled option must not be ignored: ``tennant="ann"`` would select the default tenant.
    """
    if strange := sorted(set(given) - set(known.__annotations__)):
        names = ", ".join(known.__annotations__)
        raise InputError(f"{', '.join(strange)}: unknown {what}; use {names}")
