"""How much of the evidence survives: public question sets, asked within a number of tokens.

`datasets` reads the sets, `measure` asks, `baselines` are what a memory is compared with, `report`
and `plot` show what came out. No model judges anything: evidence is there word for word, or not.
"""
