"""Firnline over HTTP: REST, an OpenAI-compatible proxy with memory, MCP, Telegram, metrics.

Needs the extra ``firnline[server]``. ``firnline serve`` runs it.
"""
