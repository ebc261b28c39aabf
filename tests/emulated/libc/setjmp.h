#pragma once
typedef unsigned long sigjmp_buf[24];
int sigsetjmp(sigjmp_buf, int) __attribute__((returns_twice));
_Noreturn void siglongjmp(sigjmp_buf, int);
