/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Macros to write a test. Each test runs in its own process. */
#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdbool.h>

#define TEST(name)							\
	static void test_##name(void);					\
	static void __attribute__((constructor)) add_##name(void)	\
	{								\
		test_add(__FILE__, #name, test_##name);			\
	}								\
	static void test_##name(void)

void test_add(const char *file, const char *name, void (*run)(void));

#define test_failed(why) test_failed_at(__FILE__, __LINE__, why)
void test_failed_at(const char *file, int line, const char *why) __attribute__((noreturn));

#define TRUE(condition)				\
	do {					\
		if (!(condition))		\
			test_failed(#condition " is not so"); \
	} while (0)
#define SAME(expected, got) \
	test_same(__FILE__, __LINE__, #got, (long long)(expected), (long long)(got))
void test_same(const char *file, int line, const char *what, long long expected, long long got);
#define SAME_TEXT(expected, got) test_same_text(__FILE__, __LINE__, #got, expected, got)
void test_same_text(const char *file, int line, const char *what, const char *expected,
		    const char *got);

/*
 * Reports that the caller would wait for ever. The test fails, unless the caller is inside STUCK().
 */
void stuck(const char *why);
/* Checks that the statement would wait for ever. */
#define STUCK(statement)					\
	do {							\
		test_may_be_stuck = true;			\
		if (!setjmp(test_stuck)) {			\
			statement;				\
			test_failed(#statement " does not wait"); \
		}						\
		test_may_be_stuck = false;			\
	} while (0)
extern jmp_buf test_stuck;
extern bool test_may_be_stuck;

#endif
