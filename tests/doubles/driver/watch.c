// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tells the emulated network cards which frames of GPU memory are pinned.
 *
 * The cards (../nic) know which addresses they hold. They report a violation if they hold the
 * address of a frame that is not pinned. All cards of a guest share one record, so one card is
 * told. The card learns of a pin by a word in its configuration space: the first frame, the number
 * of frames, and a bit for the end of the pin. The write returns when the card has read the word.
 */
#include <linux/bitfield.h>
#include <linux/pci.h>

#include "sim.h"

#define SIM_CARD_VENDOR 0x15b3
#define SIM_CARD_SUBSYSTEM 0x1ab0
#define SIM_CARD_PINS 0xc0
#define SIM_CARD_FRAMES GENMASK(30, 16)
#define SIM_CARD_UNPIN BIT(31)

static struct pci_dev *sim_card;

static void sim_watch_tell(u32 first, u32 frames, bool pinned)
{
	u32 some, word;

	for (; frames; first += some, frames -= some) {
		some = min(frames, FIELD_MAX(SIM_CARD_FRAMES));
		word = first | FIELD_PREP(SIM_CARD_FRAMES, some);
		pci_write_config_dword(sim_card, SIM_CARD_PINS,
				       pinned ? word : word | SIM_CARD_UNPIN);
	}
}

/*
 * Tells the card that @npages pages of an allocation, from @page on, have been pinned. If @pinned is
 * false, tells the card that they have been unpinned.
 */
void sim_watch(const struct sim_alloc *alloc, u32 page, u32 npages, bool pinned)
{
	u32 end = page + npages, first;

	if (!sim_card || alloc->unbacked || alloc->coherent)
		return;
	for (first = page; page < end; page++) {
		if (page + 1 < end && alloc->frame[page + 1] == alloc->frame[page] + 1)
			continue;
		sim_watch_tell(alloc->frame[first], page + 1 - first, pinned);
		first = page + 1;
	}
}

void sim_watch_init(void)
{
	sim_card = pci_get_subsys(SIM_CARD_VENDOR, PCI_ANY_ID, SIM_CARD_VENDOR, SIM_CARD_SUBSYSTEM,
				  NULL);
}

void sim_watch_exit(void)
{
	pci_dev_put(sim_card);
}
