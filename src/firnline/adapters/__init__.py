"""Adapters for agent frameworks: thin callers of append, context and recall, one module each.

Each needs its framework, which its extra installs; `firnline` itself imports none of them. What
they share is here: `reaching` (a memory from code with and without an event loop) and `keeping`
(what a framework's own history holds and the log does not).
"""
