#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""mutants.py [WORD]: puts one mistake at a time into a copy of the preloaded library. The test that
is named with the mistake must fail. With WORD, tries only the mistakes whose test has WORD in its
name."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CRATE = HERE.parents[1] / "preload"

# Each mutant has the test, the file, the right text, and the wrong text that replaces it.
MUTANTS = [
    ("test_locally_opened_libibverbs", "verbs.rs", 'c"IBVERBS_1.12"', 'c"IBVERBS_1.13"'),
    (
        "test_linked_program",
        "lib.rs",
        '#[no_mangle]\npub unsafe extern "C" fn ibv_reg_mr(',
        '/// .\npub unsafe extern "C" fn ibv_reg_mr(',
    ),
    (
        "test_libibverbs_opened_after_a_look",
        "loaded.rs",
        "self.generation.load(Ordering::Relaxed) == generation.0",
        "true",
    ),
    ("test_reg_mr_iova", "translate.rs", "asked.iova, dma", "asked.addr as u64, dma"),
    (
        "test_reg_mr_ex",
        "lib.rs",
        "verbs::MASK_ADDR_AND_IOVA => Some(iova)",
        "verbs::MASK_ADDR_AND_IOVA => Some(addr as u64)",
    ),
    ("test_reg_mr_ex_of_something_else", "lib.rs", "_ => None,", "_ => Some(iova),"),
    ("test_range", "translate.rs", "region.addr = asked.addr;", ""),
    ("test_range", "translate.rs", "let offset = pointer - start;", "let offset = 0;"),
    ("test_range", "translate.rs", "let start = pointer & !(page - 1);", "let start = pointer;"),
    ("test_range", "translate.rs", "?.checked_add(page - 1)? & !(page - 1)", "?"),
    ("test_range_that_is_none", "translate.rs", "(length != 0)", "true"),
    (
        "test_copies_are_not_late",
        "translate.rs",
        "match cuda::sync_memops(pointer)",
        "match Ok::<(), cuda::Error>(())",
    ),
    ("test_descriptors_are_closed", "libc.rs", "unsafe { close(self.0) };", ""),
    ("test_error_of_the_dma_buf_verb", "libc.rs", "unsafe { close(self.0) };", ""),
    ("test_optional_flags", "translate.rs", "asked.access & !ignored", "asked.access"),
    ("test_optional_flags", "translate.rs", "& !verbs::ACCESS_RELAXED_ORDERING", ""),
    (
        "test_flags_that_a_dma_buf_cannot_have",
        "translate.rs",
        "asked.access & IMPOSSIBLE != 0",
        "false",
    ),
    (
        "test_host_memory",
        "lib.rs",
        "if !mr.is_null() && asked.access & verbs::ACCESS_ON_DEMAND == 0 {",
        "if false {",
    ),
    (
        "test_on_demand",
        "lib.rs",
        "!mr.is_null() && asked.access & verbs::ACCESS_ON_DEMAND == 0",
        "!mr.is_null()",
    ),
    (
        "test_on_demand",
        "translate.rs",
        "        warn_of_on_demand(asked);\n        return mr;",
        "        warn_of_on_demand(asked);",
    ),
    ("test_another_failure", "translate.rs", "!matches!(answered, EFAULT | ENOMEM)", "false"),
    ("test_limit_of_locked_memory", "translate.rs", "EFAULT | ENOMEM", "EFAULT"),
    (
        "test_limit_of_locked_memory",
        "translate.rs",
        "errno.unwrap_or(answered)",
        "errno.unwrap_or(EFAULT)",
    ),
    (
        "test_wrong_address_of_the_host",
        "translate.rs",
        "if !cuda::is_gpu_memory(pointer)? {",
        "if false {",
    ),
    ("test_program_without_cuda", "cuda.rs", "INVALID_VALUE | NO_FUNCTION,", "INVALID_VALUE,"),
    ("test_libcuda_without_dma_bufs", "cuda.rs", 'Some(c"libcuda.so.1")', 'Some(c"libcuda.so.2")'),
    (
        "test_program_without_libibverbs",
        "verbs.rs",
        "libc::set_errno(libc::EOPNOTSUPP);",
        "",
    ),
    ("test_what_is_registered_meanwhile", "inside.rs", "number & AT_WORK != 0 ||", ""),
    ("test_what_is_registered_meanwhile", "inside.rs", "set_number(number() & !AT_WORK);", ""),
    (
        "test_thread_without_context",
        "translate.rs",
        "let _context = Pushed::if_none(pointer)?;",
        "",
    ),
    ("test_thread_without_context", "translate.rs", "let _context =", "let _ ="),
    (
        "test_thread_without_context",
        "cuda.rs",
        "let _ = unsafe { cuPointerGetAttribute((&raw mut context).cast(), CONTEXT, pointer) };",
        "",
    ),
    (
        "test_thread_without_context",
        "cuda.rs",
        "let _ = unsafe { cuCtxPopCurrent_v2(&raw mut context) };",
        "",
    ),
    (
        "test_pool_in_a_thread_without_context",
        "cuda.rs",
        "let _ = unsafe { cuDevicePrimaryCtxRelease_v2(self.0) };",
        "",
    ),
    (
        "test_pool_in_a_thread_without_context",
        "cuda.rs",
        "retained = Some(Retained::device_of(pointer, &mut context)?);",
        "",
    ),
    (
        "test_context_that_cannot_be_pushed",
        "cuda.rs",
        "let _ = unsafe { cuDevicePrimaryCtxRelease_v2(self.0) };",
        "",
    ),
    (
        "test_context_of_the_thread",
        "cuda.rs",
        "if !context.is_null() {\n            return Ok(None);\n        }",
        "",
    ),
    ("test_child_after_fork", "translate.rs", "_ => None,", "_ => Some(EOPNOTSUPP),"),
    (
        "test_no_descriptor_left",
        "translate.rs",
        "no_descriptor().unwrap_or(error.into())",
        "Refusal::from(error)",
    ),
    ("test_error_of_cuda", "translate.rs", "cuda::OUT_OF_MEMORY => Some(ENOMEM),", ""),
    ("test_error_of_cuda", "translate.rs", "libc::set_errno(errno);", ""),
    (
        "test_error_of_the_dma_buf_verb",
        "translate.rs",
        'c"ibv_reg_dmabuf_mr failed", Some(libc::errno())',
        'c"ibv_reg_dmabuf_mr failed", None',
    ),
    (
        "test_libibverbs_without_dma_bufs",
        "translate.rs",
        'has no ibv_reg_dmabuf_mr", Some(EOPNOTSUPP)',
        'has no ibv_reg_dmabuf_mr", None',
    ),
    (
        "test_libcuda_without_dma_bufs",
        "translate.rs",
        "cuda::NOT_SUPPORTED | cuda::NO_FUNCTION =>",
        "cuda::NOT_SUPPORTED =>",
    ),
    (
        "test_late_copies_are_no_failure",
        "translate.rs",
        'Err(error) => (c"a dma-buf',
        'Err(error) => return Err(error.into()),\n        Err(error) => (c"a dma-buf',
    ),
    ("test_log", "log.rs", "if !on() || !is_stderr_as_it_was() {", "if false {"),
    ("test_log", "log.rs", 'value == c"1"', "true"),
    (
        "test_real_libibverbs",
        "lib.rs",
        '#[no_mangle]\npub unsafe extern "C" fn ibv_reg_mr_iova2',
        '/// .\npub unsafe extern "C" fn ibv_reg_mr_iova2',
    ),
    (
        "test_locally_opened_libibverbs",
        "lib.rs",
        '#[no_mangle]\npub unsafe extern "C" fn ibv_reg_mr_iova2',
        '/// .\npub unsafe extern "C" fn ibv_reg_mr_iova2',
    ),
    # ---- the copy of libibverbs -----------------------------------------------------------
    (
        "test_bundled_copy",
        "copies.rs",
        "let is_copy = !object",
        'let is_copy = object.soname() == Some(c"libibverbs.so.1") && !object',
    ),
    (
        "test_copies_that_are_local",
        "copies.rs",
        "if !object.contains(maker as u64) {",
        "if verbs::exported(object).is_none() {",
    ),
    (
        "test_copies_that_are_local",
        "copies.rs",
        "0 => None,",
        "_ if true => None,",
    ),
    ("test_copies_that_are_local", "elf.rs", "self.find_by_old_hash(name, version)", "None"),
    (
        "test_real_libibverbs_of_a_protection_domain",
        "verbs.rs",
        "others: [usize; 13]",
        "others: [usize; 12]",
    ),
    (
        "test_real_libibverbs_of_a_protection_domain",
        "translate.rs",
        "copies::of(asked.pd)",
        "copies::of(core::ptr::null())",
    ),
    (
        "test_libibverbs_without_reg_mr_iova2",
        "elf.rs",
        "Version::Accepts(name) | Version::Only(name) => {",
        "_ if true => true,\n            Version::Accepts(name) | Version::Only(name) => {",
    ),
    (
        "test_copy_that_is_closed",
        "loaded.rs",
        "self.generation.load(Ordering::Relaxed) == generation.0",
        "true",
    ),
    (
        "test_copy_at_the_address_of_another",
        "known.rs",
        "same_code && unsafe { has(start, &entry.beginning) }",
        "same_code",
    ),
    (
        "test_success_takes_no_lock",
        "copies.rs",
        "unsafe { known::recall(maker) }.or_else(",
        "None.or_else(",
    ),
    ("test_locks_that_a_child_inherits", "lib.rs", "    gate::close_during_forks();", ""),
    (
        "test_locks_that_a_child_inherits",
        "gate.rs",
        "(enter, leave, open_in_child,",
        "(enter, leave, leave,",
    ),
    ("test_library_that_is_closed", ".cargo/config.toml", ', "-Clink-arg=-Wl,-z,nodelete"', ""),
    (
        "test_libibverbs_without_reg_mr_iova2",
        "verbs.rs",
        "self.reg_mr_iova2.or(self.reg_mr_iova)",
        "self.reg_mr_iova2",
    ),
    (
        "test_libibverbs_without_reg_mr_iova2",
        "verbs.rs",
        "(_, Some(real)) =>",
        "(Some(_), Some(real)) =>",
    ),
    (
        "test_libibverbs_without_reg_mr_iova2",
        "lib.rs",
        "&shims::REG_MR_IOVA, Verbs::reg_mr_iova)",
        "&shims::REG_MR_IOVA, Verbs::reg_mr_iova2)",
    ),
    (
        "test_name_that_libibverbs_does_not_have",
        "lib.rs",
        "(None, Some(asked)) => unsafe { copy.reg_mr_iova2(asked) }",
        "(None, Some(_)) => verbs::missing()",
    ),
    (
        "test_no_lock_of_the_dynamic_linker",
        "lib.rs",
        "    log::read_environment();",
        '    log::read_environment();\n    extern "C" {\n        fn dlerror() -> *const c_void;\n    }\n    unsafe { dlerror() };',
    ),
    (
        "test_table_of_symbols_that_is_empty",
        "elf.rs",
        "index == 0 || index < first",
        "index < first",
    ),
    ("test_list_of_objects_that_the_program_replaces", "lib.rs", "    loaded::find_walk();", ""),
    # ---- a library that is being loaded ------------------------------------------------------
    ("test_libcuda_that_is_being_loaded", "cuda.rs", "!ready::is_relocated(object)", "false"),
    (
        "test_libcuda_that_is_being_loaded",
        "ready.rs",
        "    FIND_OBJECT.store(",
        "    FIND_OBJECT.swap(null_mut(), Ordering::Relaxed);\n    let _ = (",
    ),
    (
        "test_libcuda_that_is_being_loaded_by_an_old_linker",
        "ready.rs",
        "!object.protected()",
        "true || !object.protected()",
    ),
    # ---- other preloaded libraries ---------------------------------------------------------
    ("test_another_preloaded_library", "lib.rs", "    shims::find();", ""),
    ("test_another_preloaded_library", "shims.rs", "        if is_after {", "        {"),
    ("test_refusal_is_said_once", "lib.rs", "if inside::times() != before {", "if false {"),
    ("test_refusal_is_said_once", "inside.rs", "set_number(number() & !AT_WORK)", "set_number(0)"),
    # ---- threads, and the log ----------------------------------------------------------------
    (
        "test_pending_cancellation",
        "libc.rs",
        "PTHREAD_CANCEL_DISABLE: c_int = 1",
        "PTHREAD_CANCEL_DISABLE: c_int = 0",
    ),
    (
        "test_pending_cancellation",
        "inside.rs",
        "unsafe { libc::pthread_setcancelstate(self.cancellation, null_mut()) };",
        "",
    ),
    ("test_stderr_that_is_another_file", "log.rs", "|| !is_stderr_as_it_was()", ""),
    (
        "test_stderr_that_is_another_file",
        "log.rs",
        "File::of(STDERR) == Some(File { device, inode })",
        "false",
    ),
    (
        "test_log_without_a_descriptor",
        "log.rs",
        "    ON.store(true, Ordering::Relaxed);",
        '    ON.store(true, Ordering::Relaxed);\n    extern "C" {\n        fn dup(fd: c_int) -> c_int;\n    }\n    unsafe { dup(STDERR) };',
    ),
    (
        "test_exported_names",
        "log.rs",
        "pub(crate) fn on() -> bool {",
        '#[no_mangle]\npub(crate) extern "C" fn on() -> bool {',
    ),
]


def copy_with(file, stands, mistake, to):
    shutil.copytree(CRATE, to, ignore=shutil.ignore_patterns("target"))
    path = to / file if "/" in file else to / "src" / file
    text = path.read_text()
    assert stands in text, f"{file} has no {stands!r}"
    path.write_text(text.replace(stands, mistake))


def survives(test, file, stands, mistake):
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "preload"
        copy_with(file, stands, mistake, copy)
        built = ["cargo", "build", "--release", "--offline", "--quiet"]
        subprocess.run(built, cwd=copy, check=True, stderr=subprocess.DEVNULL)
        file = next(f for f in sorted(HERE.glob("test_*.py")) if f"def {test}(" in f.read_text())
        words = ["-q", "-x", "-p", "no:cacheprovider", f"{file}::{test}"]
        ran = subprocess.run(
            [sys.executable, "-B", "-m", "pytest", *words],
            env=dict(os.environ, PRELOAD_CRATE=str(copy)),
            capture_output=True,
            text=True,
        )
        assert ran.returncode in (0, 1) and " error" not in ran.stdout, ran.stdout
        return ran.returncode == 0


def main():
    wanted = "".join(sys.argv[1:])
    survivors = 0
    for test, file, stands, mistake in MUTANTS:
        if wanted not in test:
            continue
        survived = survives(test, file, stands, mistake)
        survivors += survived
        print(
            "not ok" if survived else "ok", test, f"{file}: {stands!r} -> {mistake!r}", flush=True
        )
    return survivors != 0


if __name__ == "__main__":
    sys.exit(main())
