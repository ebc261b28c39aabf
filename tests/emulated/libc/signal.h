#pragma once
#include <stddef.h>
enum { SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGBUS = 7, SIGFPE = 8, SIGSEGV = 11 };
enum { SA_SIGINFO = 4, SA_NODEFER = 0x40000000 };
typedef struct { int si_signo, si_errno, si_code; void *si_addr; } siginfo_t;
struct sigaction {
    void (*sa_sigaction)(int, siginfo_t *, void *);
    int sa_flags;
};
int sigaction(int, const struct sigaction *, struct sigaction *);
