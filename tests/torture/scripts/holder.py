"""Holds a write transaction, as another program might: ``holder.py PATH``, until stdin closes."""

import sys

import apsw
from torture_kit import say

connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
say("held")
sys.stdin.readline()
connection.execute("ROLLBACK")
connection.close()
say("released")
