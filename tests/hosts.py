"""The other machines of recipes: a host that ssh reaches, and a container.

Both are this machine. The host's sshd speaks over a pipe, so it needs no port and no service, and
the container has this machine's files, so it needs no image. Neither uses or changes the user's
own configuration. Each is reached by a program that stands before the real one on the PATH.
"""

import contextlib
import os
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support import ask_until

# What containers need on machines that let them do less. Source: tests/tmux-mcp/e2e/run-tests.sh.
_PODMAN_FLAGS = (
    "",
    "--runtime runc --network=none",
    "--runtime runc --network=none --ulimit nofile=1024:1024 --ulimit nproc=2048:2048",
)
_START_S = 60.0


class NoHostError(Exception):
    """This machine can't have the host; the text says why."""


@contextmanager
def ssh_host(root: Path, directory: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Let `ssh build` reach this machine.

    Args:
        root: A directory for keys and configuration.
        directory: Where commands run there.
        env: Their environment. The first directory of its PATH is for the program `ssh`.

    Raises:
        NoHostError: A program is missing, or sshd does not take the connection.
    """
    search = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    ssh, sshd = shutil.which("ssh"), shutil.which("sshd", path=search)
    if not ssh or not sshd:
        raise NoHostError("ssh or sshd is missing")
    if os.geteuid() == 0:
        # Its service makes this directory, which need not run here.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)]
        subprocess.run(command, check=True)
    passed = ("PATH", "XDG_RUNTIME_DIR", "PYTHONPATH", "MCP_DEBUG_TEST")
    # A home without settings: bash reads its .bashrc for commands of ssh.
    shown = {name: env[name] for name in passed if name in env} | {"HOME": str(root)}
    variables = " ".join(f'"{name}={value}"' for name, value in shown.items())
    (root / "sshd_config").write_text(
        f"HostKey {root}/host\nAuthorizedKeysFile {root}/user.pub\nStrictModes no\nUsePAM no\n"
        f"PermitRootLogin prohibit-password\nSetEnv {variables}\n"
        f'ForceCommand cd {directory}; exec bash -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    (root / "ssh_config").write_text(
        f"Host build\nIdentityFile {root}/user\nIdentitiesOnly yes\nBatchMode yes\n"
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
        f"ProxyCommand {sshd} -i -f {root}/sshd_config\n"
    )
    _add(env, "ssh", f'exec {shlex.quote(ssh)} -F {root}/ssh_config "$@"')
    tried = subprocess.run(
        ["ssh", "build", "true"],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_START_S,
        check=False,
    )
    if tried.returncode:
        raise NoHostError(f"sshd does not work here: {tried.stderr.strip()}")
    yield


@contextmanager
def container(root: Path, directory: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Let `podman exec task` reach a container with this machine's files.

    Args:
        root: A directory for podman's storage, which is in the container, too.
        directory: Where commands run there.
        env: Their environment. The first directory of its PATH is for the program `podman`.

    Raises:
        NoHostError: podman is missing, we are not root, or no container runs.
    """
    podman = shutil.which("podman")
    if not podman or os.geteuid() != 0:
        raise NoHostError("podman is missing, or we are not root")
    name = f"task-{secrets.token_hex(4)}"
    base = [podman, "--root", f"{root}/images", "--runroot", f"{root}/storage"]
    passed = ("PATH", "XDG_RUNTIME_DIR", "PYTHONPATH", "MCP_DEBUG_TEST")
    variables = [f"--env={one}={env[one]}" for one in passed if one in env]
    complaints = ""
    for flags in _PODMAN_FLAGS:
        options = [*flags.split(), *variables, f"--volume={root}:{root}"]
        command = [*base, "run", "--detach", "--name", name, f"--workdir={directory}", *options]
        tried = subprocess.run(
            [*command, "--rootfs", "/:O", "sleep", "infinity"],
            capture_output=True, text=True, timeout=_START_S, check=False,
        )  # fmt: skip
        if tried.returncode == 0:
            break
        complaints += tried.stderr
        subprocess.run([*base, "rm", "--force", name], capture_output=True, check=False)
    else:
        raise NoHostError(f"no container runs here: {complaints.strip()}")
    script = (
        "verb=$1; shift; option=; case $1 in -*) option=$1; shift ;; esac; shift\n"
        f'exec {shlex.join(base)} "$verb" $option {name} "$@"'
    )
    _add(env, "podman", script)
    try:
        yield
    finally:
        command = [*base, "rm", "--force", "--time", "0", name]
        subprocess.run(command, capture_output=True, check=True)
        _remove(root / "images")


def _remove(storage: Path) -> None:
    """Remove podman's storage when the process that cleans up behind the container has ended."""
    ask_until(lambda: _users(storage), lambda users: users == [])
    # podman mounts this directory on itself, which is_mount does not see.
    overlay = f"{storage}/overlay"
    if f" {overlay} " in Path("/proc/self/mounts").read_text():
        subprocess.run(["umount", overlay], check=True)
    shutil.rmtree(storage)


def _users(storage: Path) -> list[str]:
    """Return the processes that have podman's storage in their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            if bytes(storage) in path.read_bytes():
                found.append(path.parent.name)
    return found


def _add(env: Mapping[str, str], name: str, script: str) -> None:
    path = Path(env["PATH"].partition(":")[0]) / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
