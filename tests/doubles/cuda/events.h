/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How a test looks at a double, and tells the double to fail. */
#ifndef LAB_EVENTS_H
#define LAB_EVENTS_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int events = -1;

/* Opens the file when the process starts, because a test later uses up all descriptors. */
__attribute__((constructor)) static void open_events(void)
{
	const char *path = getenv("EVENTS");

	if (path)
		events = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

/* Writes a line to the file $EVENTS. */
static inline void event(const char *format, ...)
{
	va_list arguments;

	if (events < 0)
		return;
	va_start(arguments, format);
	vdprintf(events, format, arguments);
	va_end(arguments);
}

/* Returns the number in $NAME, or 0. */
static inline int told(const char *name)
{
	const char *value = getenv(name);

	return value ? atoi(value) : 0;
}

#endif
