/* Runs kernels on operands between inaccessible pages, from a file of cases; reports what differs.
 *
 *     harness CASES
 *
 * cases.py writes the file and says what its fields mean; `kernels` is a generated table. Every case puts
 * its operands beside guard pages, calls one kernel, and compares the bytes of every operand and of the
 * memory around it with what they must be. A line for each case that fails, then a summary; the exit status
 * is 0 if none did. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern void *const kernels[];

enum { GEMM, BATCH_REDUCE, UNARY };
enum { DATA, POINTERS };

#define MAGIC 0x315345534143LL /* "CASES1" */
#define OPERANDS 5
#define ARGUMENTS 3
#define INTEGERS 9
#define GUARD (64 << 10) /* the largest page of the targets */
#define AROUND (8 << 10) /* bytes beside an operand that are filled and looked at */
#define UNREAD 0xFF      /* what stands beside operands: NaN in every float type */
#define UNWRITTEN 0x41   /* what stands beside results: a number, as a sum with NaN would stay the same NaN */
#define SHOWN 20         /* failures that get a line */

typedef struct {
    int64_t kernel, signature, element, numbers; /* numbers: values are compared, else bytes */
    double relative, absolute;                   /* what a value may differ by */
    int64_t integers[INTEGERS];
    double alpha, beta;
    int64_t scratch, operands;
} Case;

typedef struct {
    int64_t kind, argument, at_end, origin, target, bytes, changes;
} Operand;

static char *file_at, *file_end;
static char *regions[OPERANDS + 1]; /* the last one is scratch */
static int64_t region_bytes, slack_bytes, scratch_bytes;
static char *starts[OPERANDS];
static Operand operands[OPERANDS];
static char *contents[OPERANDS], *expectations[OPERANDS];
static sigjmp_buf before_call;
static volatile int fault_signal;
static char *volatile fault_address;

static void stop(const char *why) {
    fprintf(stderr, "harness: %s\n", why);
    exit(2);
}

static char *take(int64_t bytes) {
    char *found = file_at;
    int64_t padded = (bytes + 7) / 8 * 8;
    if (bytes < 0 || padded > file_end - file_at) stop("the file of cases ends early");
    file_at += padded;
    return found;
}

static int64_t take_integer(void) {
    int64_t value;
    memcpy(&value, take(8), 8);
    return value;
}

static char *guarded(int64_t bytes) {
    char *start = mmap(0, bytes + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start + GUARD, bytes, PROT_READ | PROT_WRITE)) stop("no memory");
    return start + GUARD;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    fault_signal = number;
    fault_address = info->si_addr;
    siglongjmp(before_call, 1);
}

static int beside(int number) {
    return operands[number].changes ? UNWRITTEN : UNREAD;
}

/* The part of a region that is filled and looked at. */
static void window(int number, char **from, char **to) {
    char *region = regions[number], *start = starts[number], *end = start + operands[number].bytes;
    *from = start - region > AROUND ? start - AROUND : region;
    *to = region + region_bytes - end > AROUND ? end + AROUND : region + region_bytes;
}

static void place(int number) {
    const Operand *operand = &operands[number];
    char *from, *to;
    if (operand->bytes > region_bytes - slack_bytes) stop("an operand is larger than its region");
    starts[number] = regions[number] + (operand->at_end ? region_bytes - slack_bytes - operand->bytes : 0);
    window(number, &from, &to);
    memset(from, beside(number), to - from);
    memcpy(starts[number], contents[number], operand->bytes);
    if (operand->kind == POINTERS)
        for (int64_t i = 0; i < operand->bytes / 8; i++) {
            int64_t *pointer = (int64_t *)starts[number] + i;
            *pointer += (int64_t)(intptr_t)(starts[operand->target] + operands[operand->target].origin);
        }
}

static void call(const Case *c) {
    char *at[ARGUMENTS] = {0};
    const int64_t *s = c->integers;
    void *kernel = kernels[c->kernel];
    char *scratch = regions[OPERANDS];
    for (int number = 0; number < c->operands; number++)
        if (operands[number].argument >= 0) at[operands[number].argument] = starts[number] + operands[number].origin;
    if (c->signature == GEMM && c->element == 4)
        ((void (*)(void *, void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                   int64_t, float, float, void *))kernel)(at[0], at[1], at[2], s[0], s[1], s[2], s[3], s[4], s[5],
                                                          s[6], s[7], s[8], (float)c->alpha, (float)c->beta, scratch);
    else if (c->signature == GEMM)
        ((void (*)(void *, void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                   int64_t, double, double, void *))kernel)(at[0], at[1], at[2], s[0], s[1], s[2], s[3], s[4], s[5],
                                                            s[6], s[7], s[8], c->alpha, c->beta, scratch);
    else if (c->signature == BATCH_REDUCE)
        ((void (*)(void *, void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t))kernel)(
            at[0], at[1], at[2], s[0], s[1], s[2], s[3], s[4]);
    else
        ((void (*)(void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t))kernel)(
            at[0], at[1], s[0], s[1], s[2], s[3], s[4], s[5]);
}

static double value_of(const char *at, int64_t element) {
    float narrow;
    double wide;
    if (element == 4) {
        memcpy(&narrow, at, 4);
        return narrow;
    }
    memcpy(&wide, at, 8);
    return wide;
}

/* Whether a value is the one required; a gap of a result holds its bytes and nothing else. */
static int same(const Case *c, const char *found, const char *required) {
    static const char gap[8] = {UNWRITTEN, UNWRITTEN, UNWRITTEN, UNWRITTEN, UNWRITTEN, UNWRITTEN, UNWRITTEN, UNWRITTEN};
    double x, y;
    if (!memcmp(found, required, c->element)) return 1;
    if (!c->numbers || !memcmp(required, gap, c->element)) return 0;
    x = value_of(found, c->element);
    y = value_of(required, c->element);
    if (isnan(y)) return isnan(x);
    return x == y || fabs(x - y) <= c->relative * fabs(y) + c->absolute;
}

/* The first thing that is not as it must be, written to `why`; 0 if there is none. */
static int differs(const Case *c, int number, char *why, size_t room) {
    const Operand *operand = &operands[number];
    const char *required = operand->changes ? expectations[number] : contents[number];
    char *from, *to, *start = starts[number], *end = start + operand->bytes;
    window(number, &from, &to);
    for (char *at = from; at < to; at++) {
        if (at == start) at = end;
        if (at >= to) break;
        if (*(unsigned char *)at != beside(number)) {
            snprintf(why, room, "operand %d: a byte %ld bytes %s it changed", number,
                     (long)(at < start ? start - at : at - end + 1), at < start ? "in front of" : "behind");
            return 1;
        }
    }
    if (operand->kind == POINTERS) return 0;
    for (int64_t i = 0; i < operand->bytes; i += c->element) {
        if (same(c, start + i, required + i)) continue;
        if (c->numbers)
            snprintf(why, room, "operand %d: element %ld is %.17g, must be %.17g", number, (long)(i / c->element),
                     value_of(start + i, c->element), value_of(required + i, c->element));
        else
            snprintf(why, room, "operand %d: the bytes of element %ld differ", number, (long)(i / c->element));
        return 1;
    }
    return 0;
}

static void explain_fault(const Case *c, char *why, size_t room) {
    int used = snprintf(why, room, "signal %d (%s)", fault_signal, strsignal(fault_signal));
    for (int number = 0; number < c->operands; number++) {
        char *at = fault_address, *start = starts[number], *end = start + operands[number].bytes;
        if (at >= end && at < regions[number] + region_bytes + GUARD)
            snprintf(why + used, room - used, ", %ld bytes behind operand %d", (long)(at - end), number);
        else if (at < start && at >= regions[number] - GUARD)
            snprintf(why + used, room - used, ", %ld bytes in front of operand %d", (long)(start - at), number);
    }
}

static int run(const Case *c, char *why, size_t room) {
    for (int number = 0; number < c->operands; number++) place(number);
    memset(regions[OPERANDS], UNREAD, c->scratch);
    if (sigsetjmp(before_call, 1)) {
        explain_fault(c, why, room);
        return 1;
    }
    call(c);
    for (int number = 0; number < c->operands; number++)
        if (differs(c, number, why, room)) return 1;
    return 0;
}

int main(int count, char **words) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    FILE *file = count == 2 ? fopen(words[1], "rb") : 0;
    int64_t cases, failed = 0;
    long size;
    if (!file) stop("one argument is needed: the file of cases");
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    file_at = malloc(size);
    if (!file_at || fread(file_at, 1, size, file) != (size_t)size) stop("the file of cases cannot be read");
    file_end = file_at + size;
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, 0);
    if (take_integer() != MAGIC) stop("this is no file of cases");
    cases = take_integer();
    region_bytes = take_integer();
    slack_bytes = take_integer();
    scratch_bytes = take_integer();
    for (int number = 0; number < OPERANDS; number++) regions[number] = guarded(region_bytes);
    regions[OPERANDS] = guarded(scratch_bytes);
    for (int64_t number = 0; number < cases; number++) {
        char why[256];
        int64_t label_bytes = take_integer();
        char *label = take(label_bytes);
        Case c;
        memcpy(&c, take(sizeof c), sizeof c);
        if (c.operands > OPERANDS || c.scratch > scratch_bytes) stop("a case is larger than the file says");
        for (int i = 0; i < c.operands; i++) {
            memcpy(&operands[i], take(sizeof(Operand)), sizeof(Operand));
            contents[i] = take(operands[i].bytes);
            if (operands[i].changes) expectations[i] = take(operands[i].bytes);
        }
        if (run(&c, why, sizeof why) && failed++ < SHOWN) {
            printf("%.*s: %s\n", (int)label_bytes, label, why);
            fflush(stdout);
        }
    }
    printf("%lld cases, %lld failed\n", (long long)cases, (long long)failed);
    return failed != 0;
}
