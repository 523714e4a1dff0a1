"""How fast and how small Firnline is: ``python -m benchmarks``, or ``make bench``.

Every figure with a target is a ratio of two things measured in turns within one run, so that a busy
or a slow machine affects both of them.
"""
