#include "backup.h"

#include <string.h>

/* Four lanes, so that the processor multiplies in parallel; the constants are those of
 * xxHash, whose value this is not. */
static const uint64_t A = 0x9e3779b185ebca87ULL, B = 0xc2b2ae3d27d4eb4fULL;

static uint64_t mix(uint64_t lane, uint64_t word)
{
	lane += word * B;
	lane = lane << 31 | lane >> 33;
	return lane * A;
}

void sum_begin(struct sum *s)
{
	*s = (struct sum){.lane = {A + B, B, 0, 0 - A}};
}

void sum_add(struct sum *s, const void *from, size_t n)
{
	const unsigned char *p = from;
	uint64_t words[4];
	s->length += n;
	for (; n >= sizeof words; n -= sizeof words, p += sizeof words) {
		memcpy(words, p, sizeof words);
		for (int i = 0; i < 4; i++)
			s->lane[i] = mix(s->lane[i], words[i]);
	}
	if (n) {
		memset(words, 0, sizeof words);
		memcpy(words, p, n);
		for (int i = 0; i < 4; i++)
			s->lane[i] = mix(s->lane[i], words[i]);
	}
}

uint64_t sum_end(const struct sum *s)
{
	uint64_t out = s->length;
	for (int i = 0; i < 4; i++) {
		out = mix(out, s->lane[i]);
		out ^= out >> 29;
	}
	return out ^ out >> 32;
}
