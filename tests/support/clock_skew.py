"""A machine with a wrong clock and one with the right clock, on one database."""

from datetime import timedelta

import pytest

from firnline.log.message import utc_now
from firnline.testing.drafts import KEY, OTHER, drafts

WRONG = pytest.mark.parametrize(
    "wrong", [timedelta(hours=1), timedelta(hours=-1)], ids=["ahead", "behind"]
)


async def check_owed(store, other, wrong):
    """Pending work uses the database's clock, whatever the clock of the `other` machine."""
    for key in (KEY, OTHER):
        await store.append(key, drafts("a"))
    assert await other.due(utc_now()) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firnline.store.clock_skew.utc_now", lambda: utc_now() + wrong)
        await other.mark_pending(KEY, utc_now() + wrong)
    assert await store.due(utc_now() + timedelta(seconds=3)) == [KEY]
    await store.mark_pending(OTHER, utc_now())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firnline.store.clock_skew.utc_now", lambda: utc_now() + wrong)
        now = utc_now() + wrong + timedelta(seconds=3)
        assert set(await other.due(now)) == {KEY, OTHER}
        known = await other.pending(now, stuck_before=now, cards="k")
        assert timedelta() < now - known.oldest < timedelta(minutes=1)
