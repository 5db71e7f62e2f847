// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Does verbs and CUDA step by step: reads commands, one a line, and answers each with one line. The
 * answer begins with `ok`, with `not` and a reason if something does not exist on this machine, or
 * with the name of an error. The steps (../steps.py) give the commands and know which answer is
 * right, so this program has no contract of its own. It also runs at the far end of an ssh connection.
 *
 * With WITHOUT_VERBS it is built for machines without libibverbs, and has the commands of GPUs only.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "client.h"
#ifndef WITHOUT_VERBS
#include "verbs.h"
#endif

#define WORDS		16

/* Obeys if the command is one of these, and returns whether it is. */
static bool is_obeyed(const struct command *commands, char **words)
{
	int count = 0;

	while (words[count + 1])
		count++;
	for (; commands->name; commands++) {
		if (strcmp(commands->name, words[0]))
			continue;
		if (count < commands->words)
			answer("EINVAL");
		else
			commands->obey(words);
		return true;
	}
	return false;
}

#ifdef WITHOUT_VERBS
static void obey(char **words)
{
	if (!is_obeyed(memory_commands, words))
		answer("unknown-command");
}

static void choose(const char *option, const char *value)
{
	if (!strcmp(option, "--gpu"))
		wanted_gpu = value;
}
#else
static void obey(char **words)
{
	if (!strcmp(words[0], "verbs"))
		open_verbs();
	else if (is_obeyed(memory_commands, words))
		return;
	else if (!pd)
		answer("not the RDMA device is not open");
	else if (!is_obeyed(verbs_commands, words) && !is_obeyed(transfer_commands, words))
		answer("unknown-command");
}

static void choose(const char *option, const char *value)
{
	if (!strcmp(option, "--gpu"))
		wanted_gpu = value;
	else if (!strcmp(option, "--device"))
		wanted_device = value;
	else if (!strcmp(option, "--port"))
		port = atoi(value);
}
#endif

int main(int argc, char **argv)
{
	char line[1024], *words[WORDS + 1], *rest;
	int i, count;

	for (i = 1; i + 1 < argc; i += 2)
		choose(argv[i], argv[i + 1]);
	/* A client must not outlive the step that has started it, and would keep memory registered. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (fgets(line, sizeof(line), stdin)) {
		count = 0;
		for (rest = line; count < WORDS && (words[count] = strtok_r(rest, " \n", &rest)); )
			count++;
		/* Words that a command lacks must be NULL. */
		for (i = count; i <= WORDS; i++)
			words[i] = NULL;
		if (count)
			obey(words);
	}
	return 0;
}
