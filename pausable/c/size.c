/* Sizes as the program prints them (strandline/units), for the texts of failures. */
#include "driver.h"

#include <stdio.h>

/* In whole numbers, as the decimal point of the C library is that of the program's locale. */
const char *size_text(uint64_t n, char to[SIZE_TEXT])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	unsigned unit = 0;
	while (n >> 10 * unit >= 1024)
		unit++;
	uint64_t whole = n >> 10 * unit, rest = n - (whole << 10 * unit);
	/* Three digits: hundredths below 10, tenths below 100. rest is below 2^60. */
	unsigned scale = unit && whole < 10 ? 100 : unit && whole < 100 ? 10 : 1;
	uint64_t part = unit ? ((rest >> (unit > 1 ? 10 * (unit - 1) : 0)) * scale + 512) / 1024 : 0;
	whole += part / scale;
	part %= scale;
	if (whole == 1024)
		whole = 1, unit++;
	if (scale == 100 && part % 10 == 0) {
		part /= 10;
		scale = 10;
	}
	if (part)
		snprintf(to, SIZE_TEXT, "%u.%0*u %s", (unsigned)whole, scale == 100 ? 2 : 1, (unsigned)part, units[unit]);
	else
		snprintf(to, SIZE_TEXT, "%u %s", (unsigned)whole, units[unit]);
	return to;
}
