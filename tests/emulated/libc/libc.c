/* As much of a C library as the programs of this folder and the library example need, without one: Linux's
 * system calls, memory that is never given back, and numbers as text. It saves building musl for every target.
 *
 * clang defines no setjmp for these targets: `sigsetjmp` keeps what a caller may expect to be kept, but for
 * the floating-point and vector registers of POWER, in which no caller here holds anything. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, CLOSE = 3, SEEK = 8, MMAP = 9, MPROTECT = 10, MUNMAP = 11, SIGACTION = 13, KILL = 62,
       GETPID = 39, OPENAT = 257, EXIT = 231 };
#elif defined(__powerpc64__)
enum { READ = 3, WRITE = 4, CLOSE = 6, SEEK = 19, MMAP = 90, MPROTECT = 125, MUNMAP = 91, SIGACTION = 173, KILL = 37,
       GETPID = 20, OPENAT = 286, EXIT = 234 };
#else /* aarch64, riscv64: the generic numbers */
enum { READ = 63, WRITE = 64, CLOSE = 57, SEEK = 62, MMAP = 222, MPROTECT = 226, MUNMAP = 215, SIGACTION = 134,
       KILL = 129, GETPID = 172, OPENAT = 56, EXIT = 94 };
#endif

static long system_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long found = number;
    __asm__ volatile("syscall" : "+a"(found) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return found;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
                  x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#elif defined(__powerpc64__)
    register long r0 __asm__("r0") = number, r3 __asm__("r3") = a, r4 __asm__("r4") = b, r5 __asm__("r5") = c,
                  r6 __asm__("r6") = d, r7 __asm__("r7") = e, r8 __asm__("r8") = f;
    __asm__ volatile("sc\n\tbns+ 1f\n\tneg 3, 3\n1:"
                     : "+r"(r0), "+r"(r3), "+r"(r4), "+r"(r5), "+r"(r6), "+r"(r7), "+r"(r8)
                     :: "cr0", "ctr", "r9", "r10", "r11", "r12", "memory");
    return r3;
#else
    register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c,
                  a3 __asm__("a3") = d, a4 __asm__("a4") = e, a5 __asm__("a5") = f;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
    return a0;
#endif
}

long syscall(long number, ...) {
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    va_end(rest);
    long found = system_call(number, a, b, c, 0, 0, 0);
    return found < 0 ? -1 : found;
}

/* The start: the stack holds the number of arguments, the arguments, the environment and the auxiliary vector. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, 0\n\tmov x0, sp\n\tbl start\n");
#elif defined(__powerpc64__)
__asm__(".globl _start\n_start:\n\taddis 2, 12, .TOC.-_start@ha\n\taddi 2, 2, .TOC.-_start@l\n\tmr 3, 1\n"
        "\tclrrdi 1, 1, 4\n\tli 0, 0\n\tstdu 0, -64(1)\n\tbl start\n\tnop\n");
#else
__asm__(".globl _start\n_start:\n.option push\n.option norelax\n\tla gp, __global_pointer$\n.option pop\n"
        "\tmv a0, sp\n\tandi sp, sp, -16\n\tcall start\n");
#endif

static const unsigned long *auxiliary;
int main(int, char **);

__attribute__((used, noreturn)) void start(long *stack) {
    long count = *stack;
    char **words = (char **)(stack + 1), **at = words + count + 1;
    while (*at++) {}
    auxiliary = (const unsigned long *)at;
    exit(main((int)count, words));
}

unsigned long getauxval(unsigned long entry) {
    for (const unsigned long *at = auxiliary; *at; at += 2)
        if (*at == entry) return at[1];
    return 0;
}

void exit(int status) {
    for (;;) system_call(EXIT, status, 0, 0, 0, 0, 0);
}

void abort(void) {
    system_call(KILL, system_call(GETPID, 0, 0, 0, 0, 0, 0), SIGABRT, 0, 0, 0, 0);
    exit(127);
}

/* --- memory ----------------------------------------------------------------------------------------- */

void *memcpy(void *to, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) ((char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int byte, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) ((char *)to)[i] = (char)byte;
    return to;
}

int memcmp(const void *x, const void *y, size_t bytes) {
    const unsigned char *left = x, *right = y;
    for (size_t i = 0; i < bytes; i++)
        if (left[i] != right[i]) return left[i] - right[i];
    return 0;
}

size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, long offset) {
    long found = system_call(MMAP, (long)at, (long)bytes, protection, flags, file, offset);
    return found < 0 && found > -4096 ? MAP_FAILED : (void *)found;
}

int mprotect(void *at, size_t bytes, int protection) {
    return system_call(MPROTECT, (long)at, (long)bytes, protection, 0, 0, 0) ? -1 : 0;
}

int munmap(void *at, size_t bytes) {
    return system_call(MUNMAP, (long)at, (long)bytes, 0, 0, 0, 0) ? -1 : 0;
}

/* Pages of its own for each piece: few are asked for. */
void *malloc(size_t bytes) {
    void *found = mmap(0, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return found == MAP_FAILED ? 0 : found;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return alignment <= 4096 ? malloc(bytes) : 0;
}

void free(void *at) {
    (void)at;
}

long sysconf(int name) {
    return name == _SC_PAGESIZE ? (long)getauxval(AT_PAGESZ) : -1;
}

/* Numerical Recipes' linear congruences: numbers that look drawn are enough. */
int rand(void) {
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (int)(state >> 1);
}

/* --- files ------------------------------------------------------------------------------------------- */

ssize_t write(int file, const void *from, size_t bytes) {
    return system_call(WRITE, file, (long)from, (long)bytes, 0, 0, 0);
}

static FILE files[8] = {{1}, {2}};
FILE *const stdout = &files[0], *const stderr = &files[1];

FILE *fopen(const char *path, const char *mode) {
    enum { AT_FDCWD = -100, WRONLY_CREAT_TRUNC = 01101 };
    static int opened = 2;
    long found = system_call(OPENAT, AT_FDCWD, (long)path, *mode == 'w' ? WRONLY_CREAT_TRUNC : 0, 0666, 0, 0);
    if (found < 0 || opened == sizeof files / sizeof *files) return 0;
    files[opened].number = (int)found;
    return &files[opened++];
}

int fclose(FILE *file) {
    return system_call(CLOSE, file->number, 0, 0, 0, 0, 0) ? -1 : 0;
}

static size_t transfer(long call, char *at, size_t size, size_t count, FILE *file) {
    size_t done = 0;
    while (done < size * count) {
        long found = system_call(call, file->number, (long)(at + done), (long)(size * count - done), 0, 0, 0);
        if (found <= 0) break;
        done += (size_t)found;
    }
    return size ? done / size : 0;
}

size_t fread(void *to, size_t size, size_t count, FILE *file) {
    return transfer(READ, to, size, count, file);
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *file) {
    return transfer(WRITE, (char *)from, size, count, file);
}

int fseek(FILE *file, long offset, int whence) {
    return system_call(SEEK, file->number, offset, whence, 0, 0, 0) < 0 ? -1 : 0;
}

long ftell(FILE *file) {
    return system_call(SEEK, file->number, 0, SEEK_CUR, 0, 0, 0);
}

void rewind(FILE *file) {
    fseek(file, 0, SEEK_SET);
}

int fflush(FILE *file) {
    (void)file; /* nothing is kept back */
    return 0;
}

/* --- numbers as text ---------------------------------------------------------------------------------- */

typedef struct {
    char *at, *end;
    int length;
} Text;

static void put(Text *text, char one) {
    if (text->at < text->end) *text->at++ = one;
    text->length++;
}

static void put_integer(Text *text, unsigned long value, unsigned base) {
    char digits[24];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while (value /= base);
    while (count) put(text, digits[--count]);
}

/* d.ddd e+xx with so many digits behind the point: near enough for a message. */
static void put_number(Text *text, double value, int digits) {
    int exponent = 0;
    if (value != value) {
        for (const char *at = "nan"; *at; at++) put(text, *at);
        return;
    }
    if (value < 0) put(text, '-'), value = -value;
    if (value > 1.7e308) {
        for (const char *at = "inf"; *at; at++) put(text, *at);
        return;
    }
    while (value >= 10) value /= 10, exponent++;
    while (value > 0 && value < 1) value *= 10, exponent--;
    for (int i = 0; i <= digits; i++) {
        int digit = (int)value;
        put(text, (char)('0' + digit));
        if (!i && digits) put(text, '.');
        value = (value - digit) * 10;
    }
    put(text, 'e');
    put(text, exponent < 0 ? '-' : '+');
    if (exponent < 0) exponent = -exponent;
    if (exponent < 10) put(text, '0');
    put_integer(text, (unsigned long)exponent, 10);
}

int vsnprintf(char *to, size_t room, const char *format, va_list given) {
    Text text = {to, to + (room ? room - 1 : 0), 0};
    for (; *format; format++) {
        int digits = -1, wide = 0;
        if (*format != '%') {
            put(&text, *format);
            continue;
        }
        if (*++format == '.') {
            if (*++format == '*') digits = va_arg(given, int), format++;
            else for (digits = 0; *format >= '0' && *format <= '9'; format++) digits = 10 * digits + *format - '0';
        }
        while (*format == 'l' || *format == 'z') wide = 1, format++;
        switch (*format) {
        case 'd': {
            long value = wide ? va_arg(given, long) : va_arg(given, int);
            if (value < 0) put(&text, '-');
            put_integer(&text, value < 0 ? -(unsigned long)value : (unsigned long)value, 10);
            break;
        }
        case 'u': put_integer(&text, wide ? va_arg(given, unsigned long) : va_arg(given, unsigned), 10); break;
        case 'x': put_integer(&text, wide ? va_arg(given, unsigned long) : va_arg(given, unsigned), 16); break;
        case 's': {
            const char *word = va_arg(given, const char *);
            for (int i = 0; i != digits && word[i]; i++) put(&text, word[i]);
            break;
        }
        case 'e':
        case 'g': put_number(&text, va_arg(given, double), digits < 0 ? 6 : digits); break;
        default: put(&text, *format);
        }
    }
    if (room) *text.at = 0;
    return text.length;
}

int snprintf(char *to, size_t room, const char *format, ...) {
    va_list given;
    va_start(given, format);
    int length = vsnprintf(to, room, format, given);
    va_end(given);
    return length;
}

static int print(int file, const char *format, va_list given) {
    static char line[4096];
    int length = vsnprintf(line, sizeof line, format, given);
    write(file, line, (size_t)(length < (int)sizeof line ? length : (int)sizeof line - 1));
    return length;
}

int fprintf(FILE *file, const char *format, ...) {
    va_list given;
    va_start(given, format);
    int length = print(file->number, format, given);
    va_end(given);
    return length;
}

int printf(const char *format, ...) {
    va_list given;
    va_start(given, format);
    int length = print(1, format, given);
    va_end(given);
    return length;
}

/* What compilers make of calls whose format needs none. */
int puts(const char *text) {
    return printf("%s\n", text);
}

int putchar(int one) {
    return printf("%.*s", 1, (char *)&one);
}

int fputs(const char *text, FILE *file) {
    return fprintf(file, "%s", text);
}

double ldexp(double value, int exponent) {
    for (; exponent > 0; exponent--) value *= 2;
    for (; exponent < 0; exponent++) value /= 2;
    return value;
}

double fmax(double x, double y) {
    return x != x || y > x ? y : x;
}

/* --- signals ------------------------------------------------------------------------------------------ */

int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    struct {
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
#if !defined(__riscv)
        void (*restorer)(void); /* no handler here returns */
#endif
        unsigned long mask;
    } kernel = {.handler = action->sa_sigaction, .flags = (unsigned long)action->sa_flags};
    (void)before;
    return system_call(SIGACTION, number, (long)&kernel, 0, sizeof kernel.mask, 0, 0) ? -1 : 0;
}

const char *strsignal(int number) {
    switch (number) {
    case SIGSEGV: return "Segmentation fault";
    case SIGBUS: return "Bus error";
    case SIGILL: return "Illegal instruction";
    case SIGFPE: return "Arithmetic exception";
    default: return "Signal";
    }
}

/* sigsetjmp(state, whatever): 0, and again what siglongjmp says. Masks stay: handlers here block nothing. */
#if defined(__x86_64__)
__asm__(".globl sigsetjmp\nsigsetjmp:\n"
        "\tmov %rbx, (%rdi)\n\tmov %rbp, 8(%rdi)\n\tmov %r12, 16(%rdi)\n\tmov %r13, 24(%rdi)\n\tmov %r14, 32(%rdi)\n"
        "\tmov %r15, 40(%rdi)\n\tlea 8(%rsp), %rdx\n\tmov %rdx, 48(%rdi)\n\tmov (%rsp), %rdx\n\tmov %rdx, 56(%rdi)\n"
        "\txor %eax, %eax\n\tret\n"
        ".globl siglongjmp\nsiglongjmp:\n"
        "\tmov %esi, %eax\n\tmov (%rdi), %rbx\n\tmov 8(%rdi), %rbp\n\tmov 16(%rdi), %r12\n\tmov 24(%rdi), %r13\n"
        "\tmov 32(%rdi), %r14\n\tmov 40(%rdi), %r15\n\tmov 48(%rdi), %rsp\n\tcld\n\tjmp *56(%rdi)\n");
#elif defined(__aarch64__)
__asm__(".globl sigsetjmp\nsigsetjmp:\n"
        "\tstp x19, x20, [x0]\n\tstp x21, x22, [x0, 16]\n\tstp x23, x24, [x0, 32]\n\tstp x25, x26, [x0, 48]\n"
        "\tstp x27, x28, [x0, 64]\n\tstp x29, x30, [x0, 80]\n\tmov x2, sp\n\tstr x2, [x0, 96]\n"
        "\tstp d8, d9, [x0, 112]\n\tstp d10, d11, [x0, 128]\n\tstp d12, d13, [x0, 144]\n\tstp d14, d15, [x0, 160]\n"
        "\tmov x0, 0\n\tret\n"
        ".globl siglongjmp\nsiglongjmp:\n"
        "\tldp x19, x20, [x0]\n\tldp x21, x22, [x0, 16]\n\tldp x23, x24, [x0, 32]\n\tldp x25, x26, [x0, 48]\n"
        "\tldp x27, x28, [x0, 64]\n\tldp x29, x30, [x0, 80]\n\tldr x2, [x0, 96]\n\tmov sp, x2\n"
        "\tldp d8, d9, [x0, 112]\n\tldp d10, d11, [x0, 128]\n\tldp d12, d13, [x0, 144]\n\tldp d14, d15, [x0, 160]\n"
        "\tmov w0, w1\n\tret\n");
#elif defined(__powerpc64__)
__asm__(".globl sigsetjmp\nsigsetjmp:\n"
        "\tmflr 0\n\tstd 0, 0(3)\n\tstd 1, 8(3)\n\tmfcr 0\n\tstd 0, 16(3)\n\tld 0, 24(1)\n\tstd 2, 24(3)\n"
        "\tstd 14, 32(3)\n\tstd 15, 40(3)\n\tstd 16, 48(3)\n\tstd 17, 56(3)\n\tstd 18, 64(3)\n\tstd 19, 72(3)\n"
        "\tstd 20, 80(3)\n\tstd 21, 88(3)\n\tstd 22, 96(3)\n\tstd 23, 104(3)\n\tstd 24, 112(3)\n\tstd 25, 120(3)\n"
        "\tstd 26, 128(3)\n\tstd 27, 136(3)\n\tstd 28, 144(3)\n\tstd 29, 152(3)\n\tstd 30, 160(3)\n\tstd 31, 168(3)\n"
        "\tli 3, 0\n\tblr\n"
        ".globl siglongjmp\nsiglongjmp:\n"
        "\tld 0, 0(3)\n\tmtlr 0\n\tld 1, 8(3)\n\tld 0, 16(3)\n\tmtcr 0\n\tld 2, 24(3)\n"
        "\tld 14, 32(3)\n\tld 15, 40(3)\n\tld 16, 48(3)\n\tld 17, 56(3)\n\tld 18, 64(3)\n\tld 19, 72(3)\n"
        "\tld 20, 80(3)\n\tld 21, 88(3)\n\tld 22, 96(3)\n\tld 23, 104(3)\n\tld 24, 112(3)\n\tld 25, 120(3)\n"
        "\tld 26, 128(3)\n\tld 27, 136(3)\n\tld 28, 144(3)\n\tld 29, 152(3)\n\tld 30, 160(3)\n\tld 31, 168(3)\n"
        "\tmr 3, 4\n\tblr\n");
#else
__asm__(".globl sigsetjmp\nsigsetjmp:\n"
        "\tsd ra, 0(a0)\n\tsd sp, 8(a0)\n\tsd s0, 16(a0)\n\tsd s1, 24(a0)\n\tsd s2, 32(a0)\n\tsd s3, 40(a0)\n"
        "\tsd s4, 48(a0)\n\tsd s5, 56(a0)\n\tsd s6, 64(a0)\n\tsd s7, 72(a0)\n\tsd s8, 80(a0)\n\tsd s9, 88(a0)\n"
        "\tsd s10, 96(a0)\n\tsd s11, 104(a0)\n\tfsd fs0, 112(a0)\n\tfsd fs1, 120(a0)\n\tfsd fs2, 128(a0)\n"
        "\tfsd fs3, 136(a0)\n\tfsd fs4, 144(a0)\n\tfsd fs5, 152(a0)\n\tli a0, 0\n\tret\n"
        ".globl siglongjmp\nsiglongjmp:\n"
        "\tld ra, 0(a0)\n\tld sp, 8(a0)\n\tld s0, 16(a0)\n\tld s1, 24(a0)\n\tld s2, 32(a0)\n\tld s3, 40(a0)\n"
        "\tld s4, 48(a0)\n\tld s5, 56(a0)\n\tld s6, 64(a0)\n\tld s7, 72(a0)\n\tld s8, 80(a0)\n\tld s9, 88(a0)\n"
        "\tld s10, 96(a0)\n\tld s11, 104(a0)\n\tfld fs0, 112(a0)\n\tfld fs1, 120(a0)\n\tfld fs2, 128(a0)\n"
        "\tfld fs3, 136(a0)\n\tfld fs4, 144(a0)\n\tfld fs5, 152(a0)\n\tmv a0, a1\n\tret\n");
#endif
