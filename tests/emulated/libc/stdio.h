#pragma once
#include <stdarg.h>
#include <stddef.h>
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
typedef struct { int number; } FILE;
extern FILE *const stdout, *const stderr;
FILE *fopen(const char *, const char *);
int fclose(FILE *), fflush(FILE *), fseek(FILE *, long, int), puts(const char *), putchar(int), fputs(const char *, FILE *);
long ftell(FILE *);
void rewind(FILE *);
size_t fread(void *, size_t, size_t, FILE *), fwrite(const void *, size_t, size_t, FILE *);
int printf(const char *, ...), fprintf(FILE *, const char *, ...), snprintf(char *, size_t, const char *, ...);
int vsnprintf(char *, size_t, const char *, va_list);
