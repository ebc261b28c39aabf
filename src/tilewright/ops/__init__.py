"""Operations, one folder each: all that is true of one operation only."""
