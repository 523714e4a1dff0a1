"""Everything with I/O that is not a store: building contexts, digesting, recall, turns."""
