// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Stands for a name service that does not answer, such as LDAP during an outage. The library is
 * loaded by LD_PRELOAD. Each call that may ask such a service writes its name into the file $ASKED,
 * and never returns.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *silent(const char *name)
{
	int file = open(getenv("ASKED"), O_WRONLY | O_CREAT | O_APPEND, 0666);

	dprintf(file, "%s\n", name);
	for (;;)
		pause();
}

#define SILENT(name) void *name(void) { return silent(#name); }

SILENT(getpwuid)
SILENT(getpwuid_r)
SILENT(getpwnam)
SILENT(getpwnam_r)
SILENT(getpwent)
SILENT(getpwent_r)
SILENT(getgrgid)
SILENT(getgrgid_r)
SILENT(getgrnam)
SILENT(getgrnam_r)
SILENT(getgrent)
SILENT(getgrouplist)
SILENT(initgroups)
SILENT(getaddrinfo)
SILENT(getnameinfo)
SILENT(gethostbyname_r)
SILENT(gethostbyaddr_r)
