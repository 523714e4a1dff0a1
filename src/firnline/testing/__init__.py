"""Conformance suites for stores and strategies, and a model server that fails on demand.

The suites need the extra ``firnline[testing]``. In a test module::

    from firnline.testing import StoreConformance, store_machine

    class TestMyStore(StoreConformance):
        def make_store(self, folder, clock):
            return MyStore(folder / "conversations", clock=clock)

    TestMyStoreByModel = store_machine(TestMyStore().make_store).TestCase

`ModelServer` (see `firnline.testing.model_server`) and `TelegramServer` need no extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from firnline.testing.drafts import draft, drafts

if TYPE_CHECKING:
    from firnline.testing.conformance import StoreConformance
    from firnline.testing.conversations import conversations
    from firnline.testing.machine import store_machine
    from firnline.testing.model_server import ModelServer
    from firnline.testing.scripted_model import call_tool
    from firnline.testing.strategy_conformance import StrategyConformance
    from firnline.testing.telegram_server import TelegramServer

__all__ = [
    "ModelServer",
    "StoreConformance",
    "StrategyConformance",
    "TelegramServer",
    "call_tool",
    "conversations",
    "draft",
    "drafts",
    "store_machine",
]

_WHERE = {
    "ModelServer": "model_server",
    "StoreConformance": "conformance",
    "StrategyConformance": "strategy_conformance",
    "TelegramServer": "telegram_server",
    "call_tool": "scripted_model",
    "conversations": "conversations",
    "store_machine": "machine",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: the model server runs without pytest and Hypothesis."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
