#pragma once
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#define isnan(x) __builtin_isnan(x)
#define fabs(x) __builtin_fabs(x)
double ldexp(double, int), fmax(double, double);
