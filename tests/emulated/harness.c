/* Runs kernels on operands between inaccessible pages, from a file of cases; reports what differs.
 *
 *     harness CASES
 *
 * case_file.py writes the file and says what its fields mean; `kernels` is a generated table. Every case puts
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

enum { GEMM, BATCH_REDUCE, UNARY, ADAPTED }; /* the last: by a generated function that spreads arrays of arguments */
enum { DATA, POINTERS, WORKSPACE }; /* the last: written, and whatever it then holds is right */
enum { STAYS, CHANGES, CHANGES_ABOUT };       /* an operand: to itself, to these bytes, to about these values */
enum { BYTES, HALF, BFLOAT, SINGLE, DOUBLE, LOW_HALF, F8E4M3, F8E5M2 }; /* how the elements of results are compared */
enum { FLOAT, WIDE_FLOAT, INTEGER, WIDE_INTEGER };      /* what alpha and beta are */

#define MAGIC 0x315345534143LL /* "CASES1" */
#define OPERANDS 32
#define ARGUMENTS 32
#define INTEGERS 40
#define GUARD (64 << 10) /* the largest page of the targets */
#define AROUND (8 << 10) /* bytes beside an operand that are filled and looked at */
#define UNREAD 0xFF      /* what stands beside operands: NaN in every float type */
#define UNWRITTEN 0x41   /* what stands beside results: a number, as a sum with NaN would stay the same NaN */
#define TEAM_THREADS 3   /* of the team, as kernels.py knows it */
#define SHOWN 20         /* failures that get a line */

typedef struct {
    int64_t kernel, signature, scalars;
    double relative, absolute;                           /* what a value may differ by */
    int64_t integers[INTEGERS];
    double alpha, beta;
    int64_t scratch, operands;
} Case;

typedef struct {
    int64_t kind, argument, at_end, origin, target, bytes, changes, values, element; /* element: bytes of what is compared */
} Operand;

static char *file_at, *file_end;
static char *regions[OPERANDS + 1]; /* the last one is scratch */
static int64_t region_bytes, slack_bytes, scratch_bytes;
static char *starts[OPERANDS];
static Operand operands[OPERANDS];
static char *contents[OPERANDS], *expectations[OPERANDS], *differences[OPERANDS];
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

/* A team of one: tasks in reverse, as other threads in turn. Half of the cases run with it. */
typedef struct Team {
    void (*run)(struct Team *team, void (*body)(void *env, int64_t thread, int64_t task), void *env, int64_t tasks);
    int64_t threads;
} Team;

static void run_backwards(Team *team, void (*body)(void *, int64_t, int64_t), void *env, int64_t tasks) {
    while (tasks-- > 0) body(env, tasks % team->threads, tasks);
}

static Team backwards = {run_backwards, TEAM_THREADS};

#define CALL_GEMM(scalar)                                                                                          \
    ((void (*)(void *, void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,     \
               int64_t, scalar, scalar, void *, Team *))kernel)(at[0], at[1], at[2], s[0], s[1], s[2], s[3], s[4], s[5],   \
                                                        s[6], s[7], s[8], (scalar)c->alpha, (scalar)c->beta, scratch,    \
                                                        team)

static void call(const Case *c) {
    char *at[ARGUMENTS] = {0};
    const int64_t *s = c->integers;
    void *kernel = kernels[c->kernel];
    char *scratch = regions[OPERANDS];
    static int64_t calls;
    Team *team = calls++ % 2 ? &backwards : 0;
    for (int number = 0; number < c->operands; number++)
        if (operands[number].argument >= 0) at[operands[number].argument] = starts[number] + operands[number].origin;
    if (c->signature == GEMM && c->scalars == FLOAT)
        CALL_GEMM(float);
    else if (c->signature == GEMM && c->scalars == WIDE_FLOAT)
        CALL_GEMM(double);
    else if (c->signature == GEMM && c->scalars == INTEGER)
        CALL_GEMM(int32_t);
    else if (c->signature == GEMM)
        CALL_GEMM(int64_t);
    else if (c->signature == ADAPTED)
        ((void (*)(char **, const int64_t *, const double *, void *, Team *))kernel)(
            at, s, (const double[]){c->alpha, c->beta}, scratch, team);
    else if (c->signature == BATCH_REDUCE)
        ((void (*)(void *, void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t))kernel)(
            at[0], at[1], at[2], s[0], s[1], s[2], s[3], s[4]);
    else
        ((void (*)(void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t))kernel)(
            at[0], at[1], s[0], s[1], s[2], s[3], s[4], s[5]);
}

/* Bytes from `from` to the first that is not `byte`, -1 if there is none. */
static int64_t first_other(const char *from, const char *to, int byte) {
    uint64_t eight, every;
    const char *at = from;
    memset(&every, byte, 8);
    for (; to - at >= 8; at += 8)
        if (memcpy(&eight, at, 8), eight != every) break;
    for (; at < to; at++)
        if (*(const unsigned char *)at != byte) return at - from;
    return -1;
}

/* The first byte that two places differ in, -1 if there is none. */
static int64_t first_difference(const char *x, const char *y, int64_t bytes) {
    uint64_t left, right;
    int64_t i = 0;
    for (; bytes - i >= 8; i += 8)
        if (memcpy(&left, x + i, 8), memcpy(&right, y + i, 8), left != right) break;
    for (; i < bytes; i++)
        if (x[i] != y[i]) return i;
    return -1;
}

static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

/* A float of 8 bits with 3 of a fraction, bias 7; only all ones is NaN. */
static double e4m3_value(uint8_t bits) {
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    double size = (bits & 127) == 127 ? NAN
                  : exponent          ? ldexp(8 + fraction, exponent - 10)
                                      : ldexp(fraction, -9);
    return bits >> 7 ? -size : size;
}

static double value_of(const char *at, int64_t values) {
    uint16_t half;
    uint32_t word;
    float narrow;
    double wide;
    switch (values) {
    case HALF: return memcpy(&half, at, 2), half_value(half);
    case BFLOAT: memcpy(&half, at, 2), word = (uint32_t)half << 16, memcpy(&narrow, &word, 4); return narrow;
    case SINGLE: return memcpy(&narrow, at, 4), narrow;
    case DOUBLE: return memcpy(&wide, at, 8), wide;
    case F8E4M3: return e4m3_value((uint8_t)*at);
    case F8E5M2: return half_value((uint16_t)((uint8_t)*at << 8));
    default: return *at;
    }
}

/* Whether a value is the one required, or as near as `allowed`; a gap of a result holds its bytes and nothing else. */
static int same(const Case *c, const Operand *o, const char *found, const char *required, const char *allowed) {
    double x, y, most;
    if (!memcmp(found, required, o->element)) return 1;
    if (o->values == BYTES) return 0;
    if (!allowed && first_other(required, required + o->element, UNWRITTEN) < 0) return 0;
    if (o->values == LOW_HALF) return !((*found ^ *required) & 15);
    x = value_of(found, o->values);
    y = value_of(required, o->values);
    if (isnan(y)) return isnan(x);
    most = c->relative * fabs(y) + c->absolute;
    if (allowed) memcpy(&most, allowed, 8);
    return x == y || fabs(x - y) <= most;
}

/* The first thing that is not as it must be, written to `why`; 0 if there is none. */
static int differs(const Case *c, int number, char *why, size_t room) {
    const Operand *operand = &operands[number];
    const char *required = operand->changes ? expectations[number] : contents[number], *allowed = 0;
    char *from, *to, *start = starts[number], *end = start + operand->bytes;
    int64_t at;
    window(number, &from, &to);
    if ((at = first_other(from, start, beside(number))) >= 0) {
        snprintf(why, room, "operand %d: a byte %ld bytes in front of it changed", number, (long)(start - from - at));
        return 1;
    }
    if ((at = first_other(end, to, beside(number))) >= 0) {
        snprintf(why, room, "operand %d: a byte %ld bytes behind it changed", number, (long)at + 1);
        return 1;
    }
    if (operand->kind != DATA || (at = first_difference(start, required, operand->bytes)) < 0) return 0;
    if (!operand->changes) {
        snprintf(why, room, "operand %d: byte %ld changed", number, (long)at);
        return 1;
    }
    for (int64_t i = 0; i < operand->bytes / operand->element; i++) {
        char *found = start + i * operand->element;
        if (operand->changes == CHANGES_ABOUT) allowed = differences[number] + i * 8;
        if (same(c, operand, found, required + i * operand->element, allowed)) continue;
        if (operand->values == BYTES)
            snprintf(why, room, "operand %d: the bytes of element %ld differ", number, (long)i);
        else
            snprintf(why, room, "operand %d: element %ld is %.17g, must be %.17g", number, (long)i,
                     value_of(found, operand->values), value_of(required + i * operand->element, operand->values));
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
            if (operands[i].changes == CHANGES_ABOUT) differences[i] = take(operands[i].bytes / operands[i].element * 8);
        }
        if (run(&c, why, sizeof why) && failed++ < SHOWN) {
            printf("%.*s: %s\n", (int)label_bytes, label, why);
            fflush(stdout);
        }
    }
    printf("%lld cases, %lld failed\n", (long long)cases, (long long)failed);
    return failed != 0;
}
