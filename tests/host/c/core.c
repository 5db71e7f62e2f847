// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests what core.c reports to Rust about the RDMA core's header. */
#include "linux.h"
#include "nvpm.h"
#include "test.h"

TEST(which_it_is)
{
#if defined(NVPM_CORE_EX)
	SAME(1, nvpm_core_flags);
	TRUE(strstr(nvpm_core_api, "5.4 and later"));
#elif defined(NVPM_CORE_PRIVATE_DATA)
	SAME(0, nvpm_core_flags);
	TRUE(strstr(nvpm_core_api, "4.1 to 5.0"));
#else
	SAME(0, nvpm_core_flags);
	TRUE(strstr(nvpm_core_api, "4.0, or 5.1"));
#endif
}
