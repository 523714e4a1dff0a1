"""The log's values: messages, entries, the hash chain, exact token counts, and every bound. Pure."""
