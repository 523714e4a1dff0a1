"""Conversations in and out: export, import, branches, migration, other programs' formats."""
