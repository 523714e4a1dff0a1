"""Chats on Telegram as conversations: a `webhook` that stores, and a `worker` that answers.

On HTTP alone, without a Telegram library: the Bot API is a few methods of JSON.
"""
