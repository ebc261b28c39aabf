/* Calls kernels over packed panels, void (long steps, const void *a, const void *b, void *c), and writes what
 * they leave in C.
 *
 * The file of cases: their number; of each the kernel, the steps, and the bytes of A, B and C; then A and B.
 * Integers are 64 bits. C is full of ones before the call, and so is what lies behind it, which is checked.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*kernel_t)(long, const void *, const void *, void *);
extern void *const kernels[];

enum { BEHIND = 256 };

static void *read_bytes(FILE *file, size_t size) {
    void *bytes = malloc(size + 1);
    if (!bytes || fread(bytes, 1, size, file) != size)
        exit(2);
    return bytes;
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    FILE *cases = fopen(arguments[1], "rb"), *results = fopen(arguments[2], "wb");
    int64_t number, head[5];
    if (!cases || !results || fread(&number, sizeof number, 1, cases) != 1)
        return 2;
    for (; number > 0; number--) {
        if (fread(head, sizeof head, 1, cases) != 1)
            return 2;
        void *a = read_bytes(cases, head[2]), *b = read_bytes(cases, head[3]);
        unsigned char *c = malloc(head[4] + BEHIND);
        memset(c, 0xFF, head[4] + BEHIND);
        ((kernel_t)kernels[head[0]])(head[1], a, b, c);
        for (int i = 0; i < BEHIND; i++)
            if (c[head[4] + i] != 0xFF)
                return 1;
        fwrite(c, 1, head[4], results);
        free(a), free(b), free(c);
    }
    return fclose(results) ? 2 : 0;
}
