#pragma once
#include <stddef.h>
#define _SC_PAGESIZE 30
typedef long ssize_t;
ssize_t write(int, const void *, size_t);
long syscall(long, ...), sysconf(int);
