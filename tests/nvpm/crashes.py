# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Contains reports of kernels about several kinds of crashes, on x86-64 and arm64. The numbers and
names are made up."""

# A line of the log that has nothing to do with GPUs, RDMA or a crash.
QUIET = ["[   10.000000] usb 1-1: new high-speed USB device number 2 using xhci_hcd"]

CRASHES = {
    "page fault": """
[  812.101] BUG: unable to handle page fault for address: ffffc90012345678
[  812.101] #PF: supervisor read access in kernel mode
[  812.101] #PF: error_code(0x0000) - not-present page
[  812.101] PGD 100000067 P4D 100000067 PUD 1001d4067 PMD 0
[  812.101] Oops: 0000 [#1] PREEMPT SMP NOPTI
[  812.101] CPU: 3 PID: 4711 Comm: secretjob Tainted: P           OE      6.1.0-50-amd64 #1
[  812.101] Hardware name: Vendor Server/Board, BIOS 2.3 01/02/2025
[  812.101] RIP: 0010:nvidia_p2p_get_pages+0x12/0x340 [nvidia]
[  812.101] Code: 48 8b 05 c3 4c 89 e7 e8 c3 5b 41 5c <48> 8b 00 90 90 90 90 90 90 90 90 90
[  812.101] RSP: 0018:ffffa0c4c12b7b28 EFLAGS: 00010246
[  812.101] RAX: 1234567890abcdef RBX: ffff8f1d4a3b2c00 RCX: 0000000000000000
[  812.101] RDX: dead000000000122 RSI: ffff8f1d4a3b2c00 RDI: 8b5f3a2c19d7e640
[  812.101] FS:  00007f8c12345740(0000) GS:ffff8f2c7fac0000(0000) knlGS:0000000000000000
[  812.101] CR2: ffffc90012345678 CR3: 00000001234de004 CR4: 0000000000770ee0
[  812.101] Call Trace:
[  812.101]  <TASK>
[  812.101]  ? __die_body.cold+0x1a/0x1f
[  812.101]  kfree+0x42/0x2a0
[  812.101]  __x64_sys_ioctl+0x90/0xd0
[  812.101]  entry_SYSCALL_64_after_hwframe+0x72/0xdc
[  812.101]  </TASK>
[  812.101] Modules linked in: nv_peer_mem(OE) nvidia(POE) mlx5_ib ib_core
[  812.101] ---[ end trace 0000000000000000 ]---
""",
    "warning": """
[  100.5] ------------[ cut here ]------------
[  100.5] WARNING: CPU: 12 PID: 4711 at mm/page_alloc.c:4330 __alloc_pages+0x2e4/0x310
[  100.5] Modules linked in: nv_peer_mem(OE)
[  100.5] CPU: 12 PID: 4711 Comm: secretjob Tainted: G           OE      5.14.0-503.el9.x86_64 #1
[  100.5] RIP: 0010:__alloc_pages+0x2e4/0x310
[  100.5] RSP: 0018:ffffb0a8c1237c18 EFLAGS: 00010246
[  100.5] R10: 9b5f3a2c19d7e640 R11: 0000000000000001 R12: ffff8f1d4a3b2c00
[  100.5] Call Trace:
[  100.5]  kmalloc_order+0x35/0xb0
[  100.5] ---[ end trace 1a2b3c4d5e6f7081 ]---
""",
    "general protection": """
[ 9.1] general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1]
[ 9.1] CPU: 0 PID: 4711 Comm: secretjob Not tainted 6.8.0-51-generic #52-Ubuntu
[ 9.1] RIP: 0010:__list_del_entry_valid+0x2b/0x90
[ 9.1] RAX: dead000000000100 RBX: dead000000000122 RCX: 0000000000000000
[ 9.1] Call Trace:
[ 9.1]  __x64_sys_close+0x3d/0x80
[ 9.1] ---[ end trace 0000000000000000 ]---
""",
    "refcount": """
[ 77.0] refcount_t: underflow; use-after-free.
[ 77.0] WARNING: CPU: 1 PID: 4711 at lib/refcount.c:28 refcount_warn_saturate+0xa6/0xf0
[ 77.0] CPU: 1 PID: 4711 Comm: secretjob Kdump: loaded Tainted: P OE 4.18.0-553.el8_10.x86_64 #1
[ 77.0] Call Trace:
[ 77.0]  put_page+0x1/0x2
[ 77.0] ---[ end trace 7f0e1d2c3b4a5968 ]---
""",
    "hung task": """
[ 500.0] INFO: task secretjob:4711 blocked for more than 120 seconds.
[ 500.0]       Tainted: P           OE     5.15.0-105-generic #115-Ubuntu
[ 500.0] "echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.
[ 500.0] task:secretjob       state:D stack:    0 pid: 4711 ppid:  4700 flags:0x00004006
[ 500.0] Call Trace:
[ 500.0]  __schedule+0x2cd/0x890
[ 500.0]  rwsem_down_write_slowpath+0x1f3/0x5a0
""",
    "list corruption": """
[ 31.0] list_del corruption. prev->next should be ffff8f1d4a3b2c00, but was dead000000000100
[ 31.0] ------------[ cut here ]------------
[ 31.0] kernel BUG at lib/list_debug.c:51!
[ 31.0] invalid opcode: 0000 [#1] SMP PTI
[ 31.0] CPU: 9 PID: 4711 Comm: secretjob Tainted: P OE 5.10.0-32-amd64 #1
[ 31.0] Call Trace:
[ 31.0]  free_pages_bulk+0x1/0x2
[ 31.0] ---[ end trace 0102030405060708 ]---
""",
    "soft lockup": """
[ 60.0] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [secretjob:4711]
[ 60.0] CPU: 3 PID: 4711 Comm: secretjob Tainted: P OEL 6.1.0-50-amd64 #1
[ 60.0] RIP: 0010:native_queued_spin_lock_slowpath+0x6e/0x1f0
[ 60.0]  _raw_spin_lock+0x1/0x2
""",
    "KASAN": """
[ 5.0] BUG: KASAN: slab-use-after-free in nvpm_revoke+0x1/0x2 [nv_peer_mem]
[ 5.0] Read of size 8 at addr ffff88810a2b3c40 by task secretjob/4711
[ 5.0]
[ 5.0] Allocated by task 4711:
[ 5.0]  kasan_save_stack+0x33/0x60
[ 5.0] Freed by task 4711:
[ 5.0]  kfree+0x1/0x2
[ 5.0] Memory state around the buggy address:
[ 5.0] >ffff88810a2b3c40: fa fb fb fb fb fb fb fb fb fb fb fb fb fb fb fb
""",
    "arm64": """
[ 3.0] Unable to handle kernel NULL pointer dereference at virtual address 0000000000000008
[ 3.0] Mem abort info:
[ 3.0]   ESR = 0x0000000096000004
[ 3.0] Internal error: Oops: 0000000096000004 [#1] SMP
[ 3.0] CPU: 71 PID: 4711 Comm: secretjob Tainted: G           OE      6.8.0-1013-nvidia-64k
[ 3.0] pstate: 23400009 (nzCv daif +PAN -UAO +TCO +DIT -SSBS BTYPE=--)
[ 3.0] pc : kfree+0x40/0x180
[ 3.0] lr : dma_unmap_sg_attrs+0x1/0x2
[ 3.0] sp : ffff80008b5f3a20
[ 3.0] x29: ffff80008b5f3a20 x28: 9b5f3a2c19d7e640 x27: 0000000000000000
[ 3.0] x3 : 8b5f3a2c19d7e640 x2 : 0000000000000000 x1 : ffff0000c0a81234
[ 3.0] Code: f9400262 d503201f 910003fd f9000bf3 (f9400400)
[ 3.0] ---[ end trace 0000000000000000 ]---
""",
    "panic": """
[ 8.0] Kernel panic - not syncing: Fatal hardware error!
[ 8.0] CPU: 1 PID: 4711 Comm: secretjob Tainted: G   M       OE      6.1.0-50-amd64
[ 8.0] Call Trace:
[ 8.0]  dump_stack_lvl+0x1/0x2
""",
}
