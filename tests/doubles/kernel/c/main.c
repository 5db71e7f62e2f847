// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * main [TEST]: runs all tests, or only tests whose name contains TEST. The name of a test is
 * FILE::FUNCTION, for example proc::regions_for_root_only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static struct {
	char name[128];
	void (*run)(void);
} tests[200];
static int count;

void test_add(const char *file, const char *name, void (*run)(void))
{
	const char *slash = strrchr(file, '/');

	file = slash ? slash + 1 : file;
	snprintf(tests[count].name, sizeof(tests[count].name), "%.*s::%s",
		 (int)strcspn(file, "."), file, name);
	tests[count++].run = run;
}

void test_failed_at(const char *file, int line, const char *why)
{
	printf("%s:%d: %s\n", file, line, why);
	fflush(stdout);
	_exit(1);
}

void test_same(const char *file, int line, const char *what, long long expected, long long got)
{
	char why[256];

	if (expected == got)
		return;
	snprintf(why, sizeof(why), "%s is %lld (0x%llx), expected was %lld", what, got, got,
		 expected);
	test_failed_at(file, line, why);
}

void test_same_text(const char *file, int line, const char *what, const char *expected,
		    const char *got)
{
	if (got && !strcmp(expected, got))
		return;
	printf("expected: %s\ngot:      %s\n", expected, got);
	test_failed_at(file, line, what);
}

jmp_buf test_stuck;
bool test_may_be_stuck;

void stuck(const char *why)
{
	if (test_may_be_stuck)
		longjmp(test_stuck, 1);
	test_failed_at("kernel", 0, why);
}

/*
 * Runs a test in a child process, and returns whether the test passes. Kills a test that does not
 * end.
 */
static bool passes(int test)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		alarm(20);
		tests[test].run();
		fflush(stdout);
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && !status;
}

int main(int words, char **word)
{
	int passed = 0, failed = 0, i;

	for (i = 0; i < count; i++) {
		if (words > 1 && !strstr(tests[i].name, word[1]))
			continue;
		if (passes(i)) {
			printf("ok %s\n", tests[i].name);
			passed++;
		} else {
			printf("%s FAILED\n", tests[i].name);
			failed++;
		}
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}
