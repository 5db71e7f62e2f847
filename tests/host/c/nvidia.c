// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests calls to the NVIDIA driver, versions of its objects, and whether GPU memory is coherent. */
#include "linux.h"
#include "nv-p2p.h"
#include "nvpm.h"
#include "test.h"

static u64 asked_for, asked_bytes;
static struct nvidia_p2p_page_table table, *put;

/* In the kernel, the NVIDIA driver defines this function. */
int nvidia_p2p_get_pages_persistent(u64 address, u64 len, struct nvidia_p2p_page_table **to,
				    u32 flags)
{
	SAME(0, flags);
	asked_for = address;
	asked_bytes = len;
	*to = &table;
	return -EINVAL;
}

int nvidia_p2p_put_pages_persistent(u64 address, struct nvidia_p2p_page_table *from, u32 flags)
{
	SAME(0, flags);
	asked_for = address;
	put = from;
	return -EIO;
}

TEST(pins_and_unpins)
{
	struct nvidia_p2p_page_table *got = NULL;

	SAME(-EINVAL, nvpm_get_pages_persistent(0x10000, 0x20000, &got));
	SAME(0x10000, asked_for);
	SAME(0x20000, asked_bytes);
	TRUE(got == &table);
	SAME(-EIO, nvpm_put_pages_persistent(0x30000, &table));
	SAME(0x30000, asked_for);
	TRUE(put == &table);
}

static u8 uuid[16];

TEST(page_tables_that_are_known)
{
	static const struct {
		u32 version;
		bool known;
	} versions[] = {
		{ 0, false }, { 0x00010000, false }, { 0x00010001, false }, { 0x00010002, true },
		{ 0x00010003, true }, { 0x00020000, true }, { 0x0002ffff, true },
		{ 0x00030000, false }, { 0xffffffff, false },
	};
	int i;

	table.gpu_uuid = uuid;
	for (i = 0; i < ARRAY_SIZE(versions); i++) {
		table.version = versions[i].version;
		SAME(versions[i].known, nvpm_page_table_known(&table));
		/*
		 * Tables before version 1.2 have no UUID. They have other data at the place of the
		 * UUID, which must not be used.
		 */
		TRUE(nvpm_page_table_uuid(&table) == (versions[i].known ? uuid : NULL));
	}
}

TEST(mappings_that_are_known)
{
	struct nvidia_p2p_dma_mapping mapping = { .version = 0x00020002 };

	TRUE(!nvpm_dma_mapping_known(&mapping));
	mapping.version = 0x00020003;
	TRUE(nvpm_dma_mapping_known(&mapping));
	mapping.version = 0x0002ffff;
	TRUE(nvpm_dma_mapping_known(&mapping));
	mapping.version = 0x00030000;
	TRUE(!nvpm_dma_mapping_known(&mapping));
	mapping.version = 0x00010005;
	TRUE(!nvpm_dma_mapping_known(&mapping));
}

#define PHYS 0x2000000000ull

static struct nvidia_p2p_page page = { .physical_address = PHYS };
static struct nvidia_p2p_page *pages[] = { &page };

/*
 * The second device has a resource of 1 MiB at PHYS. The argument @flags determines whether this
 * resource is a BAR of memory.
 */
static struct pci_dev devices[2];

static void device_with(int bar, unsigned long flags)
{
	pci_devices[0] = &devices[0];
	pci_devices[1] = &devices[1];
	memset(devices, 0, sizeof(devices));
	devices[1].resource[bar] = (struct resource){ PHYS, PHYS + 0xfffff, flags };
}

static int old_table(void)
{
	int coherent;

	table = (struct nvidia_p2p_page_table){
		.version = 0x00010002, .entries = 1, .pages = pages, .flags = 1,
	};
	coherent = nvpm_page_table_coherent(&table);
	SAME(0, devices[0].references);
	SAME(0, devices[1].references);
	return coherent;
}

TEST(the_driver_says_what_is_coherent)
{
	/*
	 * The kernel treats this memory as RAM, but the driver's flags say that the memory is not
	 * coherent. The module must believe the flags.
	 */
	the_page_phys = PHYS;
	table = (struct nvidia_p2p_page_table){
		.version = 0x00020000, .entries = 1, .pages = pages, .flags = 0xfffffffe,
	};
	SAME(0, nvpm_page_table_coherent(&table));
	table.flags = 1;
	SAME(1, nvpm_page_table_coherent(&table));
	table.version = 0x00020001;
	SAME(1, nvpm_page_table_coherent(&table));
}

TEST(memory_of_a_device_has_no_page)
{
	the_page_phys = PHYS + PAGE_SIZE;
	SAME(0, old_table());
}

TEST(memory_that_is_ram_is_coherent)
{
	the_page_phys = PHYS;
	SAME(1, old_table());
}

TEST(an_empty_table_is_not_coherent)
{
	the_page_phys = PHYS;
	table = (struct nvidia_p2p_page_table){ .version = 0x00010002, .pages = pages };
	SAME(0, nvpm_page_table_coherent(&table));
	table = (struct nvidia_p2p_page_table){ .version = 0x00010002, .entries = 1 };
	SAME(0, nvpm_page_table_coherent(&table));
}

TEST(a_page_of_a_device_is_not_coherent)
{
	the_page_phys = PHYS;
	/*
	 * A kernel without is_pci_p2pdma_page() uses is_zone_device_page() instead, which is also
	 * true for other pages.
	 */
	the_page = (struct page){ .zone_device = true, .p2pdma = true };
	SAME(0, old_table());
}

TEST(ram_that_is_not_online)
{
	the_page_phys = PHYS;
	the_page.reserved = true;
	SAME(-EOPNOTSUPP, old_table());
	device_with(0, IORESOURCE_IO);
	SAME(-EOPNOTSUPP, old_table());
	device_with(0, IORESOURCE_MEM);
	devices[1].resource[0].start++;
	SAME(-EOPNOTSUPP, old_table());
	device_with(0, IORESOURCE_MEM);
	devices[1].resource[0].start = PHYS - 2;
	devices[1].resource[0].end = PHYS - 1;
	SAME(-EOPNOTSUPP, old_table());
}

TEST(a_bar_with_reserved_pages)
{
	int bar;

	the_page_phys = PHYS;
	the_page.reserved = true;
	for (bar = 0; bar < 6; bar++) {
		device_with(bar, IORESOURCE_MEM);
		SAME(0, old_table());
	}
	device_with(1, IORESOURCE_MEM);
	devices[1].resource[1].start = PHYS - 0xfffff;
	devices[1].resource[1].end = PHYS;
	SAME(0, old_table());
}

#ifdef NVPM_HAS_IS_PCI_P2PDMA_PAGE
TEST(memory_that_is_a_zone_of_its_own)
{
	the_page_phys = PHYS;
	the_page.zone_device = true;
	SAME(-EOPNOTSUPP, old_table());
}
#endif
