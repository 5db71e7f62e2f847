// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The errors of Linux with their numbers and the C library's words, and results of CUDA's driver. They stand here,
//! because a log may come from another system. The build includes this file, too.

/// Name, number and words of each error. The words of `cuGetErrorString()` are left out, because some differ from the C
/// library's words only in capitals.
pub const ERRORS: &[(&str, u32, &str)] = &[
    ("EPERM", 1, "Operation not permitted"),
    ("ENOENT", 2, "No such file or directory"),
    ("EIO", 5, "Input/output error"),
    ("EBADF", 9, "Bad file descriptor"),
    ("EAGAIN", 11, "Resource temporarily unavailable"),
    ("ENOMEM", 12, "Cannot allocate memory"),
    ("EACCES", 13, "Permission denied"),
    ("EFAULT", 14, "Bad address"),
    ("EBUSY", 16, "Device or resource busy"),
    ("EEXIST", 17, "File exists"),
    ("ENODEV", 19, "No such device"),
    ("EINVAL", 22, "Invalid argument"),
    ("ENFILE", 23, "Too many open files in system"),
    ("EMFILE", 24, "Too many open files"),
    ("ENOSPC", 28, "No space left on device"),
    ("ENOSYS", 38, "Function not implemented"),
    ("ENODATA", 61, "No data available"),
    ("EPROTONOSUPPORT", 93, "Protocol not supported"),
    ("EOPNOTSUPP", 95, "Operation not supported"),
    ("EAFNOSUPPORT", 97, "Address family not supported by protocol"),
    ("EADDRNOTAVAIL", 99, "Cannot assign requested address"),
    ("ENETDOWN", 100, "Network is down"),
    ("ENETUNREACH", 101, "Network is unreachable"),
    ("ECONNABORTED", 103, "Software caused connection abort"),
    ("ECONNRESET", 104, "Connection reset by peer"),
    ("ETIMEDOUT", 110, "Connection timed out"),
    ("ECONNREFUSED", 111, "Connection refused"),
    ("EHOSTUNREACH", 113, "No route to host"),
    ("EREMOTEIO", 121, "Remote I/O error"),
    ("ENOKEY", 126, "Required key not available"),
    ("EKEYREJECTED", 129, "Key was rejected by service"),
    ("ENOTSUPP", 524, "Unknown error 524"),
    ("CUDA_ERROR_INVALID_VALUE", 1, ""),
    ("CUDA_ERROR_OUT_OF_MEMORY", 2, ""),
    ("CUDA_ERROR_INVALID_CONTEXT", 201, ""),
    ("CUDA_ERROR_OPERATING_SYSTEM", 304, ""),
    ("CUDA_ERROR_NOT_SUPPORTED", 801, ""),
];

/// A set of errors, with a bit for each place in `ERRORS`.
pub type Errors = u64;
