// Runs the nests of nests.c, and prints what they computed and how many threads there are.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef void nest(int, const float *, const float *, float *);
void product(int n, const float *a, const float *b, float *c);
void batch(int n, const float *a, const float *b, float *c);
void rows(int n, float **a, float **b, float **c);
#ifdef TWO_FILES
void triangle(int n, const double *a, double *c);
#endif

static int n, turns;

static void of_rows(int size, const float *a, const float *b, float *c) {
  float **table = malloc(3 * size * sizeof *table);
  for (int i = 0; i < size; i++) {
    table[i] = (float *)a + i * size;
    table[size + i] = (float *)b + i * size;
    table[2 * size + i] = c + i * size;
  }
  rows(size, table, table + size, table + 2 * size);
  free(table);
}

static void of_triangle(int size, const float *a, const float *b, float *c) {
#ifdef TWO_FILES
  double *wide = malloc(2 * size * size * sizeof *wide);
  for (int i = 0; i < size * size; i++) {
    wide[i] = a[i] + b[i];
    wide[size * size + i] = c[i];
  }
  triangle(size, wide, wide + size * size);
  for (int i = 0; i < size * size; i++)
    c[i] = wide[size * size + i];
  free(wide);
#endif
}

static nest *const nests[] = {product, batch, of_rows, of_triangle};
enum { NESTS = 4 };

// A digest of what a nest computes.
static uint64_t digest(nest *nest) {
  float *a = malloc(3 * n * n * sizeof *a), *b = a + n * n, *c = b + n * n;
  for (int i = 0; i < n * n; i++) {
    a[i] = i * 7 % 1013 * 0x1.01p-9f - 1;
    b[i] = i * 5 % 1011 * 0x1.03p-9f - 1;
    c[i] = i % 17;
  }
  nest(n, a, b, c);
  uint64_t found = 14695981039346656037u;
  for (int i = 0; i < n * n; i++) {
    uint32_t bits;
    memcpy(&bits, c + i, sizeof bits);
    found = (found ^ bits) * 1099511628211u;
  }
  free(a);
  return found;
}

// The number of threads of this process.
static int threads(void) {
  int found = -2;  // "." and ".."
  DIR *folder = opendir("/proc/self/task");
  while (readdir(folder))
    found++;
  closedir(folder);
  return found;
}

#ifdef PRETENDED
// An OpenMP of three threads that counts parallel regions.
int level, regions;
static __thread int number;
static void (*body)(void *);
int omp_get_level(void) { return level; }
int omp_get_max_threads(void) { return 3; }
int omp_get_thread_num(void) { return number; }
struct member { int number; void *data; };
static void *run(void *given) {
  struct member *member = given;
  number = member->number;
  body(member->data);
  return 0;
}
void GOMP_parallel(void (*function)(void *), void *data, unsigned count, unsigned flags) {
  struct member members[8];
  pthread_t others[8];
  regions++;
  body = function;
  for (unsigned i = 1; i < count; i++) {
    members[i] = (struct member){i, data};
    pthread_create(others + i, 0, run, members + i);
  }
  function(data);
  for (unsigned i = 1; i < count; i++)
    pthread_join(others[i], 0);
}
#else
int level, regions;
#endif

static void digests(void) {
  for (int i = 0; i < NESTS; i++)
    printf("%016lx\n", (unsigned long)digest(nests[i]));
  fflush(stdout);
}

static void *caller(void *wrong) {
  uint64_t first[NESTS];
  for (int i = 0; i < NESTS; i++)
    first[i] = digest(nests[i]);
  for (int turn = 0; turn < turns; turn++)
    for (int i = 0; i < NESTS; i++)
      if (digest(nests[i]) != first[i])
        __atomic_add_fetch((int *)wrong, 1, __ATOMIC_SEQ_CST);
  return 0;
}

static void *endless(void *unused) {
  for (;;)
    digest(product);
}

static void in_child(void (*work)(void)) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    work();
    fflush(stdout);
    exit(0);
  }
  waitpid(child, &status, 0);
  if (status)
    printf("child: %d\n", status);
}

static void digests_and_threads(void) {
  digests();
  printf("%d threads\n", threads());
}

static void with_a_child(void) {
  digests_and_threads();
  fflush(stdout);
  in_child(digests_and_threads);
}

int main(int count, char **words) {
  const char *command = words[1];
  n = count > 2 ? atoi(words[2]) : 0;
  turns = count > 3 ? atoi(words[3]) : 0;
  if (!strcmp(command, "results")) {
    digests();
    printf("%d threads\n%d regions\n", threads(), regions);
  } else if (!strcmp(command, "inside")) {
    level = 1;
    digests();
    printf("%d threads\n%d regions\n", threads(), regions);
  } else if (!strcmp(command, "callers")) {
    pthread_t callers[4];
    int wrong = 0;
    for (int i = 0; i < 4; i++)
      pthread_create(callers + i, 0, caller, &wrong);
    for (int i = 0; i < 4; i++)
      pthread_join(callers[i], 0);
    digests();
    printf("%d wrong\n", wrong);
  } else if (!strcmp(command, "forks")) {
    in_child(with_a_child);  // before any thread has started
    digests_and_threads();
    fflush(stdout);
    in_child(with_a_child);
    digests_and_threads();
  } else if (!strcmp(command, "upward")) {
    digest(product);  // starts the threads
    fesetround(FE_UPWARD);
    digests();
  } else if (!strcmp(command, "exit")) {
    pthread_t callers[2];
    for (int i = 0; i < 2; i++)
      pthread_create(callers + i, 0, endless, 0);
    digest(product);
  } else if (!strcmp(command, "unload")) {
    for (int i = 0; i < 5; i++) {
      void *library = dlopen(words[3], RTLD_NOW);
      printf("%016lx", (unsigned long)digest(dlsym(library, "product")));
      int before = threads();
      dlclose(library);
      printf(" %d %d\n", before, threads());
    }
#ifdef _OPENMP
  } else if (!strcmp(command, "region")) {
    uint64_t found[2][NESTS];
    omp_set_max_active_levels(4);
    omp_set_num_threads(4);
#pragma omp parallel num_threads(2)
    for (int i = 0; i < NESTS; i++)
      found[omp_get_thread_num()][i] = digest(nests[i]);
    int inside = threads();
    for (int i = 0; i < NESTS; i++)
      printf("%016lx%s\n", (unsigned long)found[0][i], found[0][i] == found[1][i] ? "" : " differs");
    digest(product);
    printf("%d threads inside\n%d outside\n", inside, threads());
#endif
  }
}
