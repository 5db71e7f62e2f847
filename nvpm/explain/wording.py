# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The form of the sentences that are made of the texts of the table."""

import re

# Names that begin with a small letter: those with a sign, a digit or a capital letter in them, as
# nv_peer_mem, nvidia-peermem, mlx5 and vLLM, and some programs.
NAME = re.compile(
    r"(?!plug-)[a-z]+[-_.][a-z]|[a-z]+[A-Z]|[a-z]+\d"
    r"|(?:amdgpu|conda|depmod|dkms|dmesg|dpkg|gdrcopy|gdrdrv|git|insmod|lib[a-z]+|modprobe|mscclpp"
    r"|nouveau|nvpm|openib|openibd|pahole|perftest|pyverbs|rmmod|rpmbuild|rustc|sglang|slurmd"
    r"|systemd|udev)\b"
)


def sentence(text: str) -> str:
    """Returns a phrase with a capital letter at its beginning, unless it begins with a name or with
    code."""
    return text if NAME.match(text) else text[:1].upper() + text[1:]
