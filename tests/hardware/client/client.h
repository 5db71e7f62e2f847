/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the client share: the form of a command, its answer, and buffers of memory. */
#ifndef HARDWARE_CLIENT_H
#define HARDWARE_CLIENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define BUFFERS		64
#define THREADS		64

/*
 * A command: its name, the number of words that must follow the name, and the function that obeys
 * and answers. The words that are missing are NULL, and a number that is missing is 0.
 */
struct command {
	const char *name;
	int words;
	void (*obey)(char **words);
};

/* The commands of each file, up to one without a name. */
extern const struct command memory_commands[], verbs_commands[], transfer_commands[];

enum kind { NONE, DEVICE, POOL, VMM, MANAGED, HOST };

struct buffer {
	enum kind kind;
	uint64_t address;
	size_t size;
	unsigned long long handle;
};

/* answer.c */
void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *errno_name(int error);
uint64_t number(char **words, int at);
uint64_t now(void);

/*
 * cuda.c. The options of the program choose the GPU by its PCI address, because CUDA's numbers depend
 * on the environment.
 */
extern const char *wanted_gpu;
void use_gpu(void);
int export_dma_buf(const struct buffer *buffer, size_t length, const char **reason);

/* memory.c */
struct buffer *buffer_of(char **words, int at);

/*
 * times.c. A way to do something that is timed, and to end it. `begin` returns NULL and sets errno
 * if it fails; `end` returns an error number.
 */
struct way {
	void *(*begin)(const struct buffer *buffer, size_t length);
	int (*end)(void *begun);
};

void timed(char **words, const struct way *way);
int by_value(const void *left, const void *right);

#endif
