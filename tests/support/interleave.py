"""Changes by others to a store, at the worst moment."""

from contextlib import contextmanager

import pytest


@contextmanager
def meanwhile(store, name, happens, *, call=1):
    """Run `happens` just before a method of the store is called for the n-th time."""
    real, calls = getattr(store, name), 0

    async def interrupted(*args, **options):
        nonlocal calls
        calls += 1
        if calls == call:
            await happens()
        return await real(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, name, interrupted)
        yield
    assert calls >= call, f"{name} was called {calls} times"
