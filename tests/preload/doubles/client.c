// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that registers memory: it does what its words say, one after the other, and prints a
 * line for each registration. LINKED: it is linked with libibverbs; else the word "verbs" opens that.
 *
 *	cuda, verbs		opens that library as NCCL does, for itself alone
 *	context			gives the thread a CUDA context
 *	thread, fork		the words that follow are for a new thread, or a child
 *	descriptors		leaves none
 *	reg ADDRESS LENGTH ACCESS
 *	iova ADDRESS LENGTH ACCESS IOVA
 *	ex ADDRESS LENGTH ACCESS IOVA MASK
 *	times N			the next registration N times; prints how many descriptors came
 *	threads N		the next registration 1000 times in each of so many threads
 *	probe			calls the ibv_reg_mr_iova2() that the process has without libibverbs
 *	libraries		prints those that the process has
 *
 * An ADDRESS is a number or "host".
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "doubles.h"
#include "mr_ex.h"

struct registration {
	const char *how;
	void *addr;
	size_t length;
	int access;
	uint64_t iova;
	uint64_t mask;
};

static void *verbs, *cuda;
static struct ibv_pd pd;

static void *function(void *library, const char *name, const char *version)
{
	void *it = version ? dlvsym(library, name, version) : dlsym(library, name);

	if (!it) {
		printf("%s\n", dlerror());
		exit(2);
	}
	return it;
}

#ifdef LINKED
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr);

/* Constant flags are another function than others: see verbs.h. */
static struct ibv_mr *registered(struct registration *it)
{
	struct mr_init_attr attr = { it->length, it->access, it->mask, it->iova, it->addr };

	if (!strcmp(it->how, "iova"))
		return ibv_reg_mr_iova(&pd, it->addr, it->length, it->iova, IBV_ACCESS_LOCAL_WRITE);
	if (!strcmp(it->how, "ex"))
		return ibv_reg_mr_ex(&pd, &attr);
	if (it->access == IBV_ACCESS_LOCAL_WRITE)
		return ibv_reg_mr(&pd, it->addr, it->length, IBV_ACCESS_LOCAL_WRITE);
	return ibv_reg_mr(&pd, it->addr, it->length, it->access);
}
#else
static struct ibv_mr *registered(struct registration *it)
{
	struct mr_init_attr attr = { it->length, it->access, it->mask, it->iova, it->addr };
	struct ibv_mr *(*reg)(struct ibv_pd *pd, void *addr, size_t length, int access);
	struct ibv_mr *(*iova)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access);
	struct ibv_mr *(*ex)(struct ibv_pd *pd, struct mr_init_attr *attr);

	if (!strcmp(it->how, "iova")) {
		iova = function(verbs, "ibv_reg_mr_iova", "IBVERBS_1.7");
		return iova(&pd, it->addr, it->length, it->iova, it->access);
	}
	if (!strcmp(it->how, "ex")) {
		ex = function(verbs, "ibv_reg_mr_ex", "IBVERBS_1.15");
		return ex(&pd, &attr);
	}
	reg = function(verbs, "ibv_reg_mr", "IBVERBS_1.1");
	return reg(&pd, it->addr, it->length, it->access);
}
#endif

static void say(struct ibv_mr *mr)
{
	if (mr)
		printf("addr=%p length=%zu\n", mr->addr, mr->length);
	else
		printf("errno=%d\n", errno);
	fflush(stdout);
}

static int descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int number = 0;

	while (readdir(directory))
		number++;
	closedir(directory);
	return number;
}

static void libraries(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	while (fgets(line, sizeof(line), maps))
		fputs(line, stdout);
	fclose(maps);
}

static int repeat(struct registration *it, int times)
{
	int done = 0;

	for (int i = 0; i < times; i++) {
		struct ibv_mr *mr = registered(it);

		done += mr && mr->addr == it->addr;
		free(mr);
	}
	return done;
}

static void *thousand(void *it)
{
	return (void *)(long)repeat(it, 1000);
}

static void threads(struct registration *it, int number)
{
	pthread_t thread[64];
	long done = 0;

	for (int i = 0; i < number; i++)
		pthread_create(&thread[i], NULL, thousand, it);
	for (int i = 0; i < number; i++) {
		void *value;

		pthread_join(thread[i], &value);
		done += (long)value;
	}
	printf("registered=%ld\n", done);
}

static void *words(void *arguments)
{
	int times = 0, at_once = 0;

	for (char **word = arguments; *word; word++) {
		if (!strcmp(*word, "cuda")) {
			cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		} else if (!strcmp(*word, "verbs")) {
			verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
		} else if (!strcmp(*word, "context")) {
			int (*push)(void *context);

			push = function(cuda, "cuCtxPushCurrent_v2", NULL);
			push((void *)0xcc);
		} else if (!strcmp(*word, "thread")) {
			pthread_t thread;

			pthread_create(&thread, NULL, words, word + 1);
			pthread_join(thread, NULL);
			return NULL;
		} else if (!strcmp(*word, "fork")) {
			if (fork()) {
				wait(NULL);
				return NULL;
			}
		} else if (!strcmp(*word, "descriptors")) {
			while (dup(0) >= 0)
				;
		} else if (!strcmp(*word, "times")) {
			times = atoi(*++word);
		} else if (!strcmp(*word, "threads")) {
			at_once = atoi(*++word);
		} else if (!strcmp(*word, "probe")) {
			struct ibv_mr *(*iova2)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
						unsigned int access);

			iova2 = function(RTLD_DEFAULT, "ibv_reg_mr_iova2", NULL);
			say(iova2(&pd, NULL, 0, 0, 0));
		} else if (!strcmp(*word, "libraries")) {
			libraries();
		} else {
			struct registration it = { .how = word[0] };

			it.addr = strcmp(word[1], "host") ? (void *)strtoul(word[1], NULL, 0) :
							    aligned_alloc(4096, 1 << 20);
			it.length = strtoul(word[2], NULL, 0);
			it.access = strtoul(word[3], NULL, 0);
			word += 3;
			if (strcmp(it.how, "reg"))
				it.iova = strtoul(*++word, NULL, 0);
			if (!strcmp(it.how, "ex"))
				it.mask = strtoul(*++word, NULL, 0);
			if (times) {
				int before, done;

				say(registered(&it));
				before = descriptors();
				done = repeat(&it, times);
				printf("registered=%d descriptors=%d\n", done, descriptors() - before);
			} else if (at_once) {
				threads(&it, at_once);
			} else {
				say(registered(&it));
			}
		}
	}
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	words(arguments + 1);
	return 0;
}
