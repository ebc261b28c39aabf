#pragma once
enum { AT_PAGESZ = 6, AT_HWCAP = 16, AT_HWCAP2 = 26 };
unsigned long getauxval(unsigned long);
