"""What a store has to prove: one suite, for ours and for anybody's.

Needs the extra ``firnline[testing]``. In a test module::

    from firnline.testing import StoreConformance, store_machine

    class TestMyStore(StoreConformance):
        def make_store(self, folder, clock):
            return MyStore(folder / "conversations", clock=clock)

    TestMyStoreByModel = store_machine(TestMyStore().make_store).TestCase
"""

from firnline.testing.conformance import StoreConformance
from firnline.testing.drafts import draft, drafts
from firnline.testing.machine import store_machine

__all__ = ["StoreConformance", "draft", "drafts", "store_machine"]
