// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A library whose relocation takes the dynamic linker a while. In the meantime, a library that is
 * linked with this one is in the list of objects, but is not relocated yet.
 */
static int at_once(void)
{
	return 0;
}

/* The dynamic linker calls this function. */
static void *take_time(void)
{
	for (volatile long i = 0; i < 200000000; i++)
		;
	return at_once;
}

static int slow(void) __attribute__((ifunc("take_time")));
int (*const table_of_one[])(void) = { slow };
