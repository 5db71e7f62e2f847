// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Has the kernel trust another certificate for modules. A kernel that UEFI firmware has started
 * puts the certificates of the firmware and of the machine's owner into a keyring of its own. A
 * guest has no such firmware, and the kernel lets no process write to that keyring.
 *
 *   keyring		the number of the keyring in /proc/keys
 *   certificate	a file in DER form; what is written here is added to the keyring at once
 */
#include <linux/key.h>
#include <linux/kernel_read_file.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

static int keyring;
module_param(keyring, int, 0444);
MODULE_PARM_DESC(keyring, "the number of the keyring in /proc/keys");

static int trust_add(const void *certificate, size_t size)
{
	key_ref_t found = lookup_user_key(keyring, 0, KEY_NEED_SEARCH), added;
	struct key *to;

	if (IS_ERR(found))
		return PTR_ERR(found);
	to = key_ref_to_ptr(found);
	/* Who possesses the keyring may write to it. */
	added = key_create_or_update(make_key_ref(to, true), "asymmetric", NULL, certificate, size,
				     (KEY_POS_ALL & ~KEY_POS_SETATTR) | KEY_USR_VIEW | KEY_USR_READ,
				     KEY_ALLOC_NOT_IN_QUOTA | KEY_ALLOC_BYPASS_RESTRICTION);
	key_put(to);
	if (IS_ERR(added))
		return PTR_ERR(added);
	key_ref_put(added);
	return 0;
}

static int trust_set(const char *value, const struct kernel_param *param)
{
	char path[128];
	void *certificate = NULL;
	ssize_t size;
	int ret;

	if (strscpy(path, value, sizeof(path)) < 0)
		return -ENAMETOOLONG;
	size = kernel_read_file_from_path(strim(path), 0, &certificate, SZ_64K, NULL,
					  READING_X509_CERTIFICATE);
	if (size < 0)
		return size;
	ret = trust_add(certificate, size);
	vfree(certificate);
	return ret;
}

static const struct kernel_param_ops trust_ops = { .set = trust_set };

module_param_cb(certificate, &trust_ops, NULL, 0200);
MODULE_PARM_DESC(certificate, "a certificate's file, which is added to the keyring");

MODULE_DESCRIPTION("Has the kernel trust another certificate for modules");
MODULE_LICENSE("GPL");
