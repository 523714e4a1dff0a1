"""Telegram chats as conversations: a `webhook` stores messages, and a `worker` answers them.

This uses plain HTTP, without a Telegram library: the Bot API needs only a few JSON methods.
"""
