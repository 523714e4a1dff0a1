"""The log's values: messages, entries, the hash chain, token counts and bounds. Pure."""
