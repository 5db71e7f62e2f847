// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Measures how long something takes that several threads do at once. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "client.h"

/* What a thread does, and the nanoseconds of beginning and ending, one pair for each round. */
struct runner {
	pthread_t thread;
	const struct buffer *buffer;
	const struct way *way;
	uint64_t count, length, *times;
	int error;
};

static void *run(void *argument)
{
	struct runner *runner = argument;
	uint64_t i, begun, between;
	void *one;

	use_gpu();
	for (i = 0; i < runner->count && !runner->error; i++) {
		begun = now();
		one = runner->way->begin(runner->buffer, runner->length);
		between = now();
		if (!one) {
			runner->error = errno ? errno : EINVAL;
			break;
		}
		runner->error = runner->way->end(one);
		runner->times[2 * i] = between - begun;
		runner->times[2 * i + 1] = now() - between;
	}
	return NULL;
}

int by_value(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Returns the median of the beginnings (0) or of the ends (1) of all rounds, in nanoseconds. */
static uint64_t median(const uint64_t *times, uint64_t rounds, int part, uint64_t *room)
{
	uint64_t i;

	for (i = 0; i < rounds; i++)
		room[i] = times[2 * i + part];
	qsort(room, rounds, sizeof(*room), by_value);
	return room[rounds / 2];
}

/* COMMAND BUFFER LENGTH COUNT THREADS: answers with the medians of beginning and ending, ns. */
void timed(char **words, const struct way *way)
{
	const struct buffer *buffer = buffer_of(words, 1);
	uint64_t length = number(words, 2), count = number(words, 3), threads = number(words, 4);
	uint64_t i, rounds = threads * count, *times, *room;
	struct runner runners[THREADS];
	int error = 0;

	if (!threads || threads > THREADS || !count || length > buffer->size) {
		answer("EINVAL");
		return;
	}
	times = calloc(2 * rounds, sizeof(*times));
	room = calloc(rounds, sizeof(*room));
	if (!times || !room)
		error = ENOMEM;
	for (i = 0; !error && i < threads; i++) {
		runners[i] = (struct runner){
			.buffer = buffer, .way = way, .count = count, .length = length,
			.times = times + 2 * i * count,
		};
		pthread_create(&runners[i].thread, NULL, run, &runners[i]);
	}
	while (i) {
		pthread_join(runners[--i].thread, NULL);
		error = error ? error : runners[i].error;
	}
	if (error)
		answer("%s", errno_name(error));
	else
		answer("ok %" PRIu64 " %" PRIu64, median(times, rounds, 0, room),
		       median(times, rounds, 1, room));
	free(times);
	free(room);
}
