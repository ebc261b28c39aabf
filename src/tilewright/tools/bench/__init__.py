"""The whole benchmark: every operation beside its peers, in one table, one file and one page."""
