// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests the driver's callbacks, from nv_peer_mem_callback to the function in Rust. */
#include "linux.h"
#include "nvpm.h"
#include "test.h"

extern int (*const callback_module_init)(void);
extern const void *const exported_nvpm_callback, *const exported_nvpm_callback_serve;
extern const void *const exported_nvpm_callback_number;

static u64 revoked;
static bool ends_inside;

/* In the module, Rust defines this function. */
void nvpm_revoke(u64 number)
{
	revoked = number;
	if (ends_inside)
		STUCK(nvpm_callbacks_end());
}

static void call_back(u64 number)
{
	revoked = 0;
	nvpm_callback((void *)number);
}

TEST(nobody_is_told_before_and_after)
{
	call_back(7);
	SAME(0, revoked);
	SAME(0, nvpm_callbacks_begin());
	call_back(0x123456789a);
	SAME(0x123456789a, revoked);
	nvpm_callbacks_end();
	call_back(7);
	SAME(0, revoked);
}

TEST(the_end_waits_for_those_that_run)
{
	SAME(0, nvpm_callbacks_begin());
	ends_inside = true;
	call_back(7);
	SAME(7, revoked);
	/* nvpm_callbacks_end() does not wait, because no callback is running any more. */
	nvpm_callbacks_end();
}

static int inner;

static void calls_back_once_more(void *number)
{
	if (!inner++)
		nvpm_callback(number);
}

TEST(callbacks_do_not_wait_for_each_other)
{
	SAME(0, nvpm_callback_serve(NVPM_CALLBACK_INTERFACE, calls_back_once_more));
	call_back(7);
	SAME(2, inner);
}

static void never(void *number)
{
	test_failed("the handler of an interface that is not known");
}

TEST(another_interface_is_refused)
{
	SAME(0, nvpm_callbacks_begin());
	SAME(-EPROTONOSUPPORT, nvpm_callback_serve(NVPM_CALLBACK_INTERFACE + 1, never));
	SAME(-EPROTONOSUPPORT, nvpm_callback_serve(0, NULL));
	call_back(7);
	SAME(7, revoked);
}

TEST(numbers_are_never_used_again)
{
	u64 first;

	SAME(0, nvpm_callbacks_begin());
	first = nvpm_callback_number();
	TRUE(first);
	SAME(first + 1, nvpm_callback_number());
	nvpm_callbacks_end();
	SAME(0, nvpm_callbacks_begin());
	SAME(first + 2, nvpm_callback_number());
}

TEST(the_module_stays)
{
	SAME(0, callback_module_init());
	SAME(1, callback_module.references);
	SAME(0, this_module.references);
	TRUE(exported_nvpm_callback == &nvpm_callback);
	TRUE(exported_nvpm_callback_serve == &nvpm_callback_serve);
	TRUE(exported_nvpm_callback_number == &nvpm_callback_number);
}
