#pragma once
#include <stddef.h>
#define RAND_MAX 0x7fffffff
void *malloc(size_t), *aligned_alloc(size_t, size_t);
void free(void *);
_Noreturn void exit(int);
_Noreturn void abort(void);
int rand(void);
