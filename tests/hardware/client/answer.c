// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Answers, and the numbers in commands. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client.h"

void answer(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	putchar('\n');
	fflush(stdout);
}

const char *errno_name(int error)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {
		{ EFAULT, "EFAULT" }, { EINVAL, "EINVAL" }, { ENOMEM, "ENOMEM" },
		{ EOPNOTSUPP, "EOPNOTSUPP" }, { EBUSY, "EBUSY" }, { EIO, "EIO" },
		{ EPERM, "EPERM" }, { EAGAIN, "EAGAIN" }, { ENODEV, "ENODEV" },
		{ EDQUOT, "EDQUOT" }, { EBADF, "EBADF" }, { EPROTONOSUPPORT, "EPROTONOSUPPORT" },
	};
	static char number[16];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].error == error)
			return names[i].name;
	snprintf(number, sizeof(number), "errno-%d", error);
	return number;
}

uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

uint64_t number(char **words, int at)
{
	return words[at] ? strtoull(words[at], NULL, 0) : 0;
}

