# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Other people's programs run with the preloaded library as without it: alone, and as nvpm run
starts them, without and with --audit. Each program ends with the same status and prints the same.
Run by `pytest tests/preload/programs.py`. A program that is not installed is reported as skipped,
and was not tried."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import command, environment

# The program in each language asks a pipe how many bytes wait, asks again with a wrong address, and
# starts threads and a child. Its status is 3.
SOURCES = {
    "all.c": r"""
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
static void *ask(void *out)
{
	int ends[2], bytes = 0;
	if (pipe(ends) || write(ends[1], "four", 4) != 4 || ioctl(ends[0], FIONREAD, &bytes))
		exit(9);
	printf("%d bytes\n", bytes);
#ifdef WRONG_ADDRESS
	printf("%d %d\n", ioctl(ends[0], FIONREAD, (void *)1), errno);
#endif
	fflush(stdout);
	return out;
}
int main(int count, char **words)
{
	pthread_t thread;
	pthread_attr_t small;
	int *memory = malloc(sizeof(int) * count);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	for (int i = 0; i < 8; i++)
		if (pthread_create(&thread, &small, ask, memory) || pthread_join(thread, NULL))
			return 8;
	if (!fork())
		return !ask(words);
	wait(NULL);
	memory[0] = 3;
	if (MISTAKE)
		memory[count] = 4;
	count = memory[0];
	free(memory);
	return count;
}
""",
    "all.rs": """
use std::{process::{Command, exit}, thread};
fn main() {
    let threads: Vec<_> = (0..8).map(|n| {
        thread::Builder::new().stack_size(256 << 10).spawn(move || n * n).unwrap()
    }).collect();
    let sum: i32 = threads.into_iter().map(|one| one.join().unwrap()).sum();
    println!("{sum} {}", Command::new("true").status().unwrap());
    exit(3);
}
""",
    "all.go": """
package main
// #include <sys/ioctl.h>
// static int ask(int fd) { int n = 0; return ioctl(fd, FIONREAD, &n) ? -1 : n; }
import "C"
import ("fmt"; "os"; "os/exec"; "sync")
func main() {
	var all sync.WaitGroup
	read, write, _ := os.Pipe()
	write.Write([]byte("four"))
	for i := 0; i < 100; i++ { all.Add(1); go func() { C.ask(C.int(read.Fd())); all.Done() }() }
	all.Wait()
	fmt.Println(C.ask(C.int(read.Fd())), exec.Command("true").Run())
	os.Exit(3)
}
""",
    "All.java": """
public class All {
    public static void main(String[] words) throws Exception {
        Thread thread = new Thread(null, () -> System.out.println("thread"), "small", 256 << 10);
        thread.start();
        thread.join();
        System.out.println(new ProcessBuilder("true").start().waitFor());
        System.exit(3);
    }
}
""",
    "all.js": """
const {Worker, isMainThread} = require("worker_threads");
if (!isMainThread) { console.log("worker"); return; }
new Worker(__filename).on("exit", () => {
  console.log(require("child_process").spawnSync("true").status);
  process.exit(3);
});
""",
    "all.py": """
import fcntl, multiprocessing, os, sys, termios, threading
read, write = os.pipe()
os.write(write, b"four")
print(fcntl.ioctl(read, termios.FIONREAD, bytes(4)))
try:
    fcntl.ioctl(99, termios.FIONREAD, bytes(4))
except OSError as error:
    print(error)
threading.stack_size(256 << 10)
threads = [threading.Thread(target=print, args=[n]) for n in range(4)]
for thread in threads:
    thread.start()
    thread.join()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(abs, [-1, 2]))
sys.exit(3)
""",
}

CC = [os.environ.get("CC", "cc"), "-w", "-g", "-pthread", "all.c", "-o", "program"]
RIGHT, WRONG = "-DMISTAKE=0", "-DMISTAKE=1"
# With any auditor, the memory that glibc frees for valgrind at the end is not that of malloc().
FREERES = "--run-libc-freeres=no"
GDB = ("set print thread-events off", "break ask", "run", "bt 1", "delete", "continue")
GDB = ["gdb", "-nx", "-q", "-batch", *(f"-ex={word}" for word in GDB)]
# Each row has a name, the command that makes the program, and the command that runs it.
PROGRAMS = {
    "C": ([*CC, RIGHT, "-DWRONG_ADDRESS"], ["./program"]),
    "C, static": ([*CC, RIGHT, "-static"], ["./program"]),
    "C, LD_BIND_NOW": ([*CC, RIGHT, "-Wl,-z,now"], ["./program"]),
    "AddressSanitizer, static": (
        [*CC, RIGHT, "-fsanitize=address", "-static-libasan"],
        ["./program"],
    ),
    "AddressSanitizer, a mistake": (
        [*CC, WRONG, "-fsanitize=address", "-static-libasan"],
        ["./program"],
    ),
    "ThreadSanitizer, static": (
        [*CC, RIGHT, "-fsanitize=thread", "-static-libtsan"],
        ["./program"],
    ),
    "valgrind": ([*CC, RIGHT], ["valgrind", "-q", FREERES, "./program"]),
    "gdb": ([*CC, RIGHT], [*GDB, "./program"]),
    "Rust": (["rustc", "-o", "program", "all.rs"], ["./program"]),
    "rustc": ([], ["rustc", "--emit=metadata", "--crate-type=rlib", "--crate-name=x", "/dev/null"]),
    "Go, by cgo": (["go", "build", "-o", "program", "all.go"], ["./program"]),
    "Java": (["javac", "All.java"], ["java", "-Xint", "All"]),
    "Node": ([], ["node", "all.js"]),
    "Python": ([], [sys.executable, "all.py"]),
    "sh": ([], ["sh", "-c", "stty size </dev/null; ls -d / | cat; exit 3"]),
}


# With any auditor, glibc calls ThreadSanitizer before it has begun, and the program crashes, and
# valgrind reports strlen() of the auditor's own glibc 2.41. Both are compared with the same program
# beside an auditor that only reads the names.
DIFFER_WITH_ANY = ("ThreadSanitizer, static", "valgrind")
READS_NAMES = r"""
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
static volatile size_t length;
unsigned int la_version(unsigned int version)
{
	return version;
}
unsigned int la_objopen(struct link_map *map, Lmid_t list, uintptr_t *cookie)
{
	length = strlen(map->l_name);
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to,
	unsigned int *flags, const char *name)
{
	*flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
	length = strlen(name);
	return symbol->st_value;
}
"""


def ran(words, where, **variables):
    """Runs a program. Returns its status, and what it prints, without the numbers that differ each
    time: addresses, processes and times."""
    done = subprocess.run(
        words,
        cwd=where,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, level(done.stdout), level(done.stderr)


def level(text):
    """Returns the lines in an order of their own, because several processes write them."""
    return sorted(re.sub(r"0x[0-9a-fA-F]+|\b\d{2,}\b", "N", text).splitlines())


def for_nvpm(library, audit):
    """Returns the variables that `nvpm run` sets."""
    return {k: v for k, v in environment(library, audit).items() if os.environ.get(k) != v}


@pytest.mark.parametrize("audit", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_the_same(bed, tmp_path, name, audit):
    make, words = PROGRAMS[name]
    for tool in (make[:1], words[:1]):
        if tool and not tool[0].startswith("./") and not shutil.which(tool[0]):
            pytest.skip(f"not tried: {tool[0]} is not installed")
    for file, text in SOURCES.items():
        Path(tmp_path, file).write_text(text)
    if make:
        command(*make, cwd=tmp_path)
    plain = ran(words, tmp_path)
    assert plain[0] == (0 if name in ("gdb", "rustc") else 1 if "mistake" in name else 3), plain
    variables = for_nvpm(str(bed.library), audit)
    if audit and name in DIFFER_WITH_ANY:
        Path(tmp_path, "auditor.c").write_text(READS_NAMES)
        command(CC[0], "-shared", "-fPIC", "-o", "auditor.so", "auditor.c", cwd=tmp_path)
        plain = ran(words, tmp_path, **{**variables, "LD_PRELOAD": "", "LD_AUDIT": "./auditor.so"})
    assert ran(words, tmp_path, **variables) == plain
