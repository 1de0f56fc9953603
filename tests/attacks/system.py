"""The kernel and the network."""

from tests.attacks import HONEST, Attack, beside

LIBC = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    print(libc.syscall(number, *args), os.strerror(ctypes.get_errno()))
"""
DENIED = "-1 Operation not permitted\n"


def denied(name: str, *calls: str) -> Attack:
    """Return an attack by calls of the C library, each of which must be denied."""
    lines = [
        f"ctypes.set_errno(0)\nprint({call}, os.strerror(ctypes.get_errno()))" for call in calls
    ]
    return beside(name, LIBC + "\n".join(lines), printed=DENIED * len(calls))


def refused_socket(name: str, code: str) -> Attack:
    """Return an attack by a connection, which must not come about."""
    lines = code.strip().replace("\n", "\n    ")
    text = f"import socket\ntry:\n    {lines}\nexcept OSError as error:\n    print('no', error)"
    return beside(name, text, printed="no ")


ATTACKS = [
    denied("mounts", "libc.mount(b'none', b'/scratch', b'tmpfs', 0, None)"),
    denied("bind mount", "libc.mount(b'/', b'/scratch', None, 4096, None)"),
    denied("unmounts", "libc.umount2(b'/scratch', 2)", "libc.umount2(b'/proc', 2)"),
    denied("new user namespace", "libc.unshare(0x10000000)"),
    denied("new mount namespace", "libc.unshare(0x00020000)"),
    denied(
        "new namespace by clone",
        "libc.syscall(56 if os.uname().machine == 'x86_64' else 220, 0x10000011, 0, 0, 0, 0)",
    ),
    denied("another process's namespace", "libc.setns(0, 0)"),
    denied("another root", "libc.chroot(b'/scratch')"),
    denied("io_uring", "libc.syscall(425, 8, 0)"),
    denied("memory file", "libc.memfd_create(b'x', 0)"),
    denied("memory that outlives its process", "libc.shmget(1, 4096, 0o1666)"),
    denied("the kernel's log", "libc.klogctl(3, None, 0)"),
    beside(
        "another user",
        """
import os
for user in (0, 1000, 65533):
    try: os.setuid(user)
    except OSError as error: print(error.strerror)
""",
        printed="Invalid argument\n" * 3,
    ),
    beside(
        "a device",
        """
import os, stat
try: os.mknod("d", stat.S_IFBLK | 0o600, os.makedev(254, 0))
except OSError as error: print(error.strerror)
""",
        printed="Operation not permitted",
    ),
    beside(
        "rights of a program",
        """
lines = [line.split() for line in open("/proc/self/status")]
held = ("CapInh:", "CapPrm:", "CapEff:", "CapAmb:")
print([int(words[1], 16) for words in lines if words and words[0] in held])
print([words[1] for words in lines if words and words[0] == "NoNewPrivs:"])
""",
        printed="[0, 0, 0, 0]\n['1']",
    ),
    beside(
        "settings of the kernel",
        """
for name in ("kernel/core_pattern", "kernel/hostname", "vm/drop_caches", "fs/file-max"):
    try: open(f"/proc/sys/{name}", "w").write("1")
    except OSError as error: print("no")
""",
        printed="no\n" * 4,
    ),
    beside(
        "no one else",
        """
import os
seen = {int(name) for name in os.listdir("/proc") if name.isdigit()}
print(seen == {1, os.getpid()})
""",
        printed="True",
    ),
    refused_socket("connection", "socket.create_connection(('127.0.0.1', PORT), 1).send(b'hello')"),
    refused_socket("datagram", "socket.socket(2, 2).sendto(b'hello', ('127.0.0.1', PORT))"),
    refused_socket("raw socket", "socket.socket(2, 3, 1)"),
    refused_socket(
        "abstract address", "s = socket.socket(1)\ns.connect(chr(0) + f'companion-{PORT}')"
    ),
    refused_socket("own server", "s = socket.create_server(('0.0.0.0', 8888))"),
    refused_socket("name server", "socket.getaddrinfo('example.org', 80)"),
    refused_socket(
        "web",
        "import urllib.request\nurllib.request.urlopen(f'http://127.0.0.1:{PORT}/', timeout=1)",
    ),
    Attack(
        "a shell", "import subprocess\nsubprocess.run(['/bin/sh', '-c', 'id'])" + HONEST, "error"
    ),
    beside("a command", "import os\nprint(os.system('touch /scratch/x') != 0)", printed="True"),
]
