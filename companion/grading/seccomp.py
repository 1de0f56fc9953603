"""The system calls that no answer needs, as a filter for the kernel.

Namespaces and limits already hold; the filter takes away what would test them (mounts, new
namespaces, tracing, keyrings, loading code into the kernel) and the memory that no limit counts
(System V segments, memory files). A list of what is denied, not of what is allowed: NumPy and
torch use too many calls, and each C library others.
"""

from __future__ import annotations

import errno
import platform
import struct

# name: (number on x86_64, number on aarch64), from the kernel's unistd tables.
DENIED = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "socket": (41, 198),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "swapon": (167, 224),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "personality": (135, 92),
    "syslog": (103, 116),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
}
# Denied for another process than the caller's: which argument names it, 0 for the caller.
FOR_OTHERS = {
    "prlimit64": (302, 261, 0),
    "sched_setaffinity": (203, 122, 0),
    "sched_setattr": (314, 274, 0),
    "sched_setparam": (142, 118, 0),
    "sched_setscheduler": (144, 119, 0),
    "setpriority": (141, 140, 1),
    "ioprio_set": (251, 30, 1),
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, AUDIT_ARCH
CLONE = (56, 220)
CLONE3 = 435
NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
X32 = 0x40000000  # x86_64's second table of calls, with other numbers

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def program() -> bytes | None:
    """Return the filter as bytes of struct sock_filter, or None on a machine without a table.

    Reference: Linux, Documentation/userspace-api/seccomp_filter.rst.
    """
    if platform.machine() not in MACHINES:
        return None
    column, architecture = MACHINES[platform.machine()]
    denied = sorted(numbers[column] for numbers in DENIED.values())
    lines = [
        _line(LOAD, ARCHITECTURE),
        _line(EQUAL, architecture, 1, 0),
        _line(RETURN, KILL),
        _line(LOAD, NUMBER),
        _line(AT_LEAST, X32, 0, 1),
        _line(RETURN, KILL),
    ]
    for number in denied:
        lines += [_line(EQUAL, number, 0, 1), _line(RETURN, ERRNO | errno.EPERM)]
    for *numbers, argument in FOR_OTHERS.values():
        lines += [
            _line(EQUAL, numbers[column], 0, 4),
            _line(LOAD, ARGUMENTS + 8 * argument),
            _line(EQUAL, 0, 1, 0),
            _line(RETURN, ERRNO | errno.EPERM),
            _line(RETURN, ALLOW),
        ]
    # clone3 keeps its flags behind a pointer, where a filter can't read them; the C library
    # falls back to clone where the kernel has no clone3.
    lines += [_line(EQUAL, CLONE3, 0, 1), _line(RETURN, ERRNO | errno.ENOSYS)]
    lines += [
        _line(EQUAL, CLONE[column], 0, 3),
        _line(LOAD, ARGUMENTS),
        _line(ANY_BIT, NEW_NAMESPACES, 0, 1),
        _line(RETURN, ERRNO | errno.EPERM),
        _line(RETURN, ALLOW),
    ]
    return b"".join(lines)


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
