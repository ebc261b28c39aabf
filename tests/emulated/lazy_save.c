/* Calls a kernel that uses ZA where a caller further up has left ZA's content to whoever needs the unit, as
 * the Procedure Call Standard for the Arm 64-bit Architecture has it: TPIDR2_EL0 points to a block that says
 * where the content belongs. The kernel must save it there, clear TPIDR2_EL0, turn ZA off, and keep d8 to d15.
 *
 * Exit status 0, or the number of what is wrong. */
#include <stdint.h>
#include <string.h>

extern void unit(long steps, const void *a, const void *b, void *c);

enum { MOST = 256 }; /* bytes of the longest vector */

static unsigned char operands[8 * MOST], result[2 * MOST * MOST];
static unsigned char before[MOST * MOST], after[MOST * MOST + 1];
static struct {
    void *buffer;
    uint16_t rows;
    uint8_t reserved[6];
} block __attribute__((aligned(16)));

int main(void) {
    uint64_t bytes, pointer, control, floats[8];
    __asm__ volatile(".arch_extension sme\n\trdsvl %0, #1" : "=r"(bytes));
    for (int i = 0; i < MOST * MOST; i++) before[i] = (unsigned char)(i * 31 + i / 251 + 1);
    memset(after, 0xEE, sizeof after), memset(result, 0xEE, sizeof result);
    block.buffer = after;
    block.rows = (uint16_t)bytes;
    __asm__ volatile(
        ".arch_extension sme\n\t"
        "smstart za\n\t"
        "mov w12, wzr\n\t"
        "mov x9, %[from]\n"
        "1:\n\t"
        "ldr za[w12, 0], [x9]\n\t"
        "add x9, x9, %[bytes]\n\t"
        "add w12, w12, 1\n\t"
        "cmp x12, %[bytes]\n\t"
        "b.lt 1b\n\t"
        "msr tpidr2_el0, %[block]\n\t"
        "fmov d8, #1.0\n\tfmov d9, #2.0\n\tfmov d10, #3.0\n\tfmov d11, #4.0\n\t"
        "fmov d12, #5.0\n\tfmov d13, #6.0\n\tfmov d14, #7.0\n\tfmov d15, #8.0\n\t"
        "mov x0, 3\n\tmov x1, %[operands]\n\tmov x2, %[operands]\n\tmov x3, %[result]\n\t"
        "bl unit\n\t"
        "stp d8, d9, [%[floats]]\n\tstp d10, d11, [%[floats], 16]\n\t"
        "stp d12, d13, [%[floats], 32]\n\tstp d14, d15, [%[floats], 48]\n\t"
        "mrs %[pointer], tpidr2_el0\n\t"
        "mrs %[control], svcr\n\t"
        : [pointer] "=&r"(pointer), [control] "=&r"(control)
        : [from] "r"(before), [bytes] "r"(bytes), [block] "r"(&block), [operands] "r"(operands),
          [result] "r"(result), [floats] "r"(floats)
        : "memory", "cc", "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
          "x14", "x15", "x16", "x17", "x30", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15");
    if (pointer) return 1;
    if (control) return 2; /* neither streaming mode nor ZA */
    if (memcmp(before, after, bytes * bytes)) return 3;
    if (after[bytes * bytes] != 0xEE) return 4;
    for (int i = 0; i < 8; i++) {
        double kept = i + 1;
        if (memcmp(&floats[i], &kept, 8)) return 5;
    }
    for (unsigned i = 0; i < sizeof result; i++)
        if (i < bytes * bytes ? result[i] : result[i] != 0xEE) return 6; /* the products of zeros */
    return 0;
}
