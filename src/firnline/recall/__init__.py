"""Recall: finding the right old messages.

`dates` turns words such as "last tuesday" into the time they mean (`dates.interval`, which answers
with a `dates.Interval`); `when` has the days and the clocks for it, `datewords` the words it knows,
in English and a few other languages.

`tools` are what a model may ask its own conversation, `result` writes what they return, and `stats`
says what they save.
"""
