"""Reader of LLVM IR: functions as loop nests."""
