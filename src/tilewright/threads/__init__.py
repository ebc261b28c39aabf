"""The thread pool, scratch memory of threads, forks and the end of the process."""
