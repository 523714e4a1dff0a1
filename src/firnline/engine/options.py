"""What can be chosen when a memory is opened, all of it by name, all of it optional."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    """Whose conversations these are."""
    strategy: Strategy | str
    """How contexts are planned where a conversation has no strategy of its own: `layered`.

    One of `strategies`, or its name."""
    strategies: Sequence[Strategy]
    """Strategies of your own, so that conversations can be given them."""
    model: ModelLike | None
    """Who writes digests and answers turns; closed with the memory. None is the offline mode."""
    tokens_of: str
    """The name of the model whose tokens are counted, if it is another one."""
    summarizer: Summarizer
    """Yours, in place of the model's or the offline one."""
    extractor: Extractor
    """Yours, in place of the model's or the offline one."""
    background: bool
    """Digests are made by a worker and never waited for."""
    worker: bool
    """Whether a worker may run in this process; else all is left to ``firnline worker``."""
    spend: Spend
    """How many calls and tokens digests may cost."""
    breaker: Breaker
    """When a failing model is left in peace for a while."""
    lease_seconds: float
    """After how long a digest whose worker is gone is taken over."""
    embedder: Embedder | str | None
    """Finds entries by their meaning: ``"auto"`` (the default) is the packaged model if the extra
    ``firnline[recall]`` is installed; a name is for `open_embedder`; None is search by words."""
    topic_rules: Rules
    """When messages join a topic and how topics fade, other than by default."""
    observer: Observer
    """Is told of events as they happen, for metrics."""


def check_names(given: Iterable[str], known: Any, what: str = "option") -> None:
    """`InputError` for a name that the `TypedDict` `known` has not.

    A misspelt option would be passed over: ``tennant="ann"`` would mean the tenant that everybody
    shares.
    """
    if strange := sorted(set(given) - set(known.__annotations__)):
        names = ", ".join(known.__annotations__)
        raise InputError(f"{', '.join(strange)}: no such {what}; there are {names}")
