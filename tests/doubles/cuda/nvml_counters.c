// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A libnvidia-ml.so.1 with one GPU, whose PCI link has moved as many bytes as
 * the variables NVML_SENT and NVML_RECEIVED say. NVML_TYPE is the type of the
 * values, and NVML_CODE what the fields answer, as on a driver that does not
 * know them.
 */
#include <stdlib.h>
#include <string.h>

#define SUCCESS		0
#define INVALID		2
#define NOT_FOUND	6

#define TX_BYTES	197
#define RX_BYTES	198

#define UNSIGNED_INT	1

/* As nvmlFieldValue_t of NVIDIA's header. */
struct field_value {
	unsigned int field;
	unsigned int scope;
	long long timestamp;
	long long latency;
	int type;
	int code;
	union {
		unsigned int ui;
		unsigned long long ull;
	} value;
};

static int is_prepared;
static int the_gpu;

static unsigned long long number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : 0;
}

int nvmlInit_v2(void)
{
	is_prepared = 1;
	return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **gpu)
{
	if (!is_prepared || strcmp(address, "0000:03:00.0"))
		return NOT_FOUND;
	*gpu = &the_gpu;
	return SUCCESS;
}

int nvmlDeviceGetFieldValues(void *gpu, int count, struct field_value *values)
{
	if (gpu != &the_gpu)
		return INVALID;
	for (int at = 0; at < count; at++) {
		struct field_value *one = &values[at];
		unsigned long long bytes;

		if (one->field != TX_BYTES && one->field != RX_BYTES)
			return INVALID;
		bytes = number(one->field == TX_BYTES ? "NVML_SENT" : "NVML_RECEIVED");
		one->type = number("NVML_TYPE");
		one->code = number("NVML_CODE");
		memset(&one->value, 0xff, sizeof(one->value));
		if (one->type == UNSIGNED_INT)
			one->value.ui = bytes;
		else
			one->value.ull = bytes;
	}
	return SUCCESS;
}
