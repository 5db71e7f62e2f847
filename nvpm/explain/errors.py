# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the names of Linux errors in a line: as a name (ENOMEM), in the C library's words (Cannot
allocate memory), or as a number (errno 12, -12). Results of CUDA's driver are found by name and
number. The tables are here, because the log may come from another system than nvpm's own."""

import re
from typing import FrozenSet, Iterator

ERRORS = {
    "EPERM": (1, "Operation not permitted"),
    "ENOENT": (2, "No such file or directory"),
    "EIO": (5, "Input/output error"),
    "EBADF": (9, "Bad file descriptor"),
    "EAGAIN": (11, "Resource temporarily unavailable"),
    "ENOMEM": (12, "Cannot allocate memory"),
    "EACCES": (13, "Permission denied"),
    "EFAULT": (14, "Bad address"),
    "EBUSY": (16, "Device or resource busy"),
    "EEXIST": (17, "File exists"),
    "ENODEV": (19, "No such device"),
    "EINVAL": (22, "Invalid argument"),
    "ENFILE": (23, "Too many open files in system"),
    "EMFILE": (24, "Too many open files"),
    "ENOSPC": (28, "No space left on device"),
    "ENOSYS": (38, "Function not implemented"),
    "ENODATA": (61, "No data available"),
    "EPROTONOSUPPORT": (93, "Protocol not supported"),
    "EOPNOTSUPP": (95, "Operation not supported"),
    "EADDRNOTAVAIL": (99, "Cannot assign requested address"),
    "ENETDOWN": (100, "Network is down"),
    "ENETUNREACH": (101, "Network is unreachable"),
    "ECONNABORTED": (103, "Software caused connection abort"),
    "ETIMEDOUT": (110, "Connection timed out"),
    "ECONNREFUSED": (111, "Connection refused"),
    "EHOSTUNREACH": (113, "No route to host"),
    "EREMOTEIO": (121, "Remote I/O error"),
    "ENOKEY": (126, "Required key not available"),
    "EKEYREJECTED": (129, "Key was rejected by service"),
    "ENOTSUPP": (524, "Unknown error 524"),
}
# Results of CUDA's driver, with the number and the words that stand for each. The words of
# cuGetErrorString() are left out, because some of these words differ from the C library's words
# only in capitals.
RESULTS = {
    "CUDA_ERROR_INVALID_VALUE": (1, "CUDA_ERROR_INVALID_VALUE"),
    "CUDA_ERROR_OUT_OF_MEMORY": (2, "CUDA_ERROR_OUT_OF_MEMORY"),
    "CUDA_ERROR_INVALID_CONTEXT": (201, "CUDA_ERROR_INVALID_CONTEXT"),
    "CUDA_ERROR_OPERATING_SYSTEM": (304, "CUDA_ERROR_OPERATING_SYSTEM"),
    "CUDA_ERROR_NOT_SUPPORTED": (801, "CUDA_ERROR_NOT_SUPPORTED"),
}
# Linux has the small numbers.
BY_NUMBER = {number: name for name, (number, _) in ERRORS.items()}
BY_NUMBER.update({number: name for name, (number, _) in RESULTS.items() if number > 200})
ERRORS.update(RESULTS)
BY_WORDS = {words: name for name, (_, words) in ERRORS.items() if name not in RESULTS}
WORDS = re.compile("|".join(map(re.escape, BY_WORDS)))
NAMES = re.compile(rf"\b(?:{'|'.join(ERRORS)})\b")
# A number is an error only behind a word that says so, in parentheses with a minus, or in brackets
# at the end of the line, as glog prints it. "failed 12 of 16" has no error.
NUMBERS = re.compile(
    r"(?:\berrno|\berr(?:or)?|\bret(?:urned|val)?|\brc|\bRC|\bfailed:|\bfailed with)[ =:(\[]*"
    r"(?:code[ =:]*)?-?(\d{1,3})\b(?![.\d])(?! (?:of|times|MB|GB)\b)"
    r"|\(-(\d{1,3})\)|: .*\[(\d{1,3})\]\s*$"
)


def in_words(line: str) -> Iterator[str]:
    for words in WORDS.finditer(line):
        yield BY_WORDS[words.group()]
    for name in NAMES.finditer(line):
        yield name.group()


def in_numbers(line: str) -> Iterator[str]:
    for number in NUMBERS.finditer(line):
        value = int(next(filter(None, number.groups())))
        if value in BY_NUMBER:
            yield BY_NUMBER[value]


def errors(line: str) -> FrozenSet[str]:
    """Returns the names of the errors in a line. Words and names come before numbers: if the line
    has both, the number may be one of the program's own."""
    return frozenset(in_words(line)) or frozenset(in_numbers(line))
