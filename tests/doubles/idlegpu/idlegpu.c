// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A PCI function that NVIDIA's own driver takes for a GPU of the model T4, until a program opens
 * it. Without a GPU, that driver does not stay loaded.
 *
 * The function is the only one on its bus, and this module answers accesses to the configuration
 * space of this bus. The BARs of the function lie in the BAR of QEMU's ivshmem-plain. The simulated
 * driver uses that BAR as GPU memory, and the real driver does not use it. Only the registers that
 * identify the chip are set.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>

/* The device ivshmem-plain. */
#define MEMORY_VENDOR PCI_VENDOR_ID_REDHAT_QUMRANET
#define MEMORY_DEVICE 0x1110
#define MEMORY_BAR 2

/* Registers, and their values in a TU104. */
#define PMC_BOOT_0 0
#define PMC_BOOT_0_TU104 0x164000a1
#define PMC_BOOT_42 0xa00
#define PMC_BOOT_42_TU104 0x164a1000

#define BAR_64 (PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH)

static u32 config[PCI_CFG_SPACE_SIZE / 4] = {
	[PCI_VENDOR_ID / 4] = 0x1eb8 << 16 | PCI_VENDOR_ID_NVIDIA,
	[PCI_CLASS_REVISION / 4] = PCI_CLASS_DISPLAY_3D << 16 | 0xa1,
	[PCI_BASE_ADDRESS_1 / 4] = BAR_64,
	[PCI_BASE_ADDRESS_3 / 4] = BAR_64,
	[PCI_SUBSYSTEM_VENDOR_ID / 4] = 0x12a2 << 16 | PCI_VENDOR_ID_NVIDIA,
	/* Pin A is line 11, because that driver needs an interrupt. */
	[PCI_INTERRUPT_LINE / 4] = 1 << 8 | 11,
};

/* The bits that can be written. Those of a BAR tell its size. */
static const u32 writable[PCI_CFG_SPACE_SIZE / 4] = {
	[PCI_COMMAND / 4] = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE,
	[PCI_BASE_ADDRESS_0 / 4] = (u32)-SZ_16M,
	[PCI_BASE_ADDRESS_1 / 4] = (u32)-SZ_64M,
	[PCI_BASE_ADDRESS_2 / 4] = ~0U,
	[PCI_BASE_ADDRESS_3 / 4] = (u32)-SZ_32M,
	[PCI_BASE_ADDRESS_4 / 4] = ~0U,
	[PCI_INTERRUPT_LINE / 4] = 0xff,
};

static struct pci_dev *memory;
static struct pci_bus *bus_of_its_own;
static struct resource window = {
	.name = KBUILD_MODNAME,
	.flags = IORESOURCE_MEM,
};

static int idle_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	*value = ~0U;
	if (devfn || where >= PCI_CFG_SPACE_SIZE)
		return PCIBIOS_DEVICE_NOT_FOUND;
	*value = config[where / 4] >> where % 4 * 8;
	if (size < 4)
		*value &= (1U << size * 8) - 1;
	return PCIBIOS_SUCCESSFUL;
}

static int idle_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	u32 mask = size < 4 ? (1U << size * 8) - 1 : ~0U;

	if (devfn || where >= PCI_CFG_SPACE_SIZE)
		return PCIBIOS_DEVICE_NOT_FOUND;
	mask = mask << where % 4 * 8 & writable[where / 4];
	config[where / 4] = (config[where / 4] & ~mask) | (value << where % 4 * 8 & mask);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops idle_ops = {
	.read = idle_read,
	.write = idle_write,
};

static struct pci_sysdata idle_domain = {
	.domain = 1,
	.node = NUMA_NO_NODE,
};

static int idle_set_registers(void)
{
	struct pci_dev *gpu = pci_get_slot(bus_of_its_own, 0);
	void __iomem *registers = NULL;

	if (gpu)
		registers = pci_ioremap_bar(gpu, 0);
	pci_dev_put(gpu);
	if (!registers)
		return -ENOMEM;
	writel(PMC_BOOT_0_TU104, registers + PMC_BOOT_0);
	writel(PMC_BOOT_42_TU104, registers + PMC_BOOT_42);
	iounmap(registers);
	return 0;
}

static void idle_remove(void)
{
	pci_lock_rescan_remove();
	pci_stop_root_bus(bus_of_its_own);
	pci_remove_root_bus(bus_of_its_own);
	pci_unlock_rescan_remove();
	release_resource(&window);
	pci_dev_put(memory);
}

static int __init idle_init(void)
{
	LIST_HEAD(resources);
	int ret;

	memory = pci_get_device(MEMORY_VENDOR, MEMORY_DEVICE, NULL);
	if (!memory)
		return -ENODEV;
	window.start = pci_resource_start(memory, MEMORY_BAR);
	window.end = pci_resource_end(memory, MEMORY_BAR);
	ret = request_resource(&memory->resource[MEMORY_BAR], &window);
	if (ret)
		goto put;
	ret = -ENOMEM;
	pci_add_resource(&resources, &window);
	bus_of_its_own = pci_scan_root_bus(NULL, 0, &idle_ops, &idle_domain, &resources);
	if (!bus_of_its_own)
		goto release;
	pci_bus_assign_resources(bus_of_its_own);
	ret = idle_set_registers();
	if (ret) {
		idle_remove();
		return ret;
	}
	pci_bus_add_devices(bus_of_its_own);
	return 0;
release:
	pci_free_resource_list(&resources);
	release_resource(&window);
put:
	pci_dev_put(memory);
	return ret;
}

module_init(idle_init);
module_exit(idle_remove);

MODULE_DESCRIPTION("A GPU for NVIDIA's own driver, until somebody opens it");
MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_LICENSE("Dual BSD/GPL");
