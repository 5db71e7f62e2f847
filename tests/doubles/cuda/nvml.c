// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A libnvidia-ml.so.1 for programs that are linked with it, and that go on if it knows nothing.
 */

#define NVML_ERROR_NOT_SUPPORTED	3

const char *nvmlErrorString(int error)
{
	return "not supported by the lab";
}

int nvmlInit_v2(void)
{
	return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlShutdown(void)
{
	return NVML_ERROR_NOT_SUPPORTED;
}
