"""Recall: finding the right old messages.

`query` parses a question, `search` finds candidates by words, meaning and date, `features` and
`rank` score them, and `vectors` compares sentence vectors. `tools` are the functions with which a
model reads its own conversation, and `result` writes what they return.
"""
