/* Calls kernels over packed panels, void (long steps, const void *a, const void *b, void *c), and writes what
 * they leave in C.
 *
 * The file of cases: their number; of each the kernel, the steps, and the bytes of A, B and C; then A and B.
 * Integers are 64 bits. C is full of ones before the call, and so is what lies behind it, which is checked. A
 * and B end at a page that may not be read.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void (*kernel_t)(long, const void *, const void *, void *);
extern void *const kernels[];

enum { BEHIND = 256 };

/* Bytes of a file that end at a page which may not be read, and the whole pages they stand in. */
struct guarded {
    unsigned char *bytes, *pages;
    size_t length;
};

static struct guarded read_bytes(FILE *file, size_t size) {
    size_t page = sysconf(_SC_PAGESIZE), room = (size + page - 1) / page * page;
    struct guarded found = {0, 0, room + page};
    found.pages = mmap(0, found.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found.pages == MAP_FAILED || mprotect(found.pages + room, page, PROT_NONE))
        exit(2);
    found.bytes = found.pages + room - size;
    if (fread(found.bytes, 1, size, file) != size)
        exit(2);
    return found;
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
        struct guarded a = read_bytes(cases, head[2]), b = read_bytes(cases, head[3]);
        unsigned char *c = malloc(head[4] + BEHIND);
        memset(c, 0xFF, head[4] + BEHIND);
        ((kernel_t)kernels[head[0]])(head[1], a.bytes, b.bytes, c);
        for (int i = 0; i < BEHIND; i++)
            if (c[head[4] + i] != 0xFF)
                return 1;
        fwrite(c, 1, head[4], results);
        munmap(a.pages, a.length), munmap(b.pages, b.length), free(c);
    }
    return fclose(results) ? 2 : 0;
}
