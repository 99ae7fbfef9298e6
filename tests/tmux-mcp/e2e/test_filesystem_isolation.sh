#!/usr/bin/env bash
# What commands in panes can't do: a list, tried through our own tools, each with what has to come of it.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

# Things of the host that must not be seen.
secret=$work/secret
echo "secret of the host" >"$secret"
chmod 644 "$secret"
ln -s "$secret" "$ws/link"
echo shared >"$ws/file"
export SECRET_OF_HOST=1

start_server_in "$SANDBOX_BASE" "$ws" tmux-debug-mcp

gives "the workspace can be read" 'cat /workspace/file' shared
gives "the workspace can be written" 'echo made >/workspace/made; cat /workspace/made' made

denies "a file of the host" "cat '$secret'" "No such file"
denies "a file of the host by a link" 'cat /workspace/link' "No such file"
denies "a file of the host by a path up" "cat '/workspace/../../..$secret'" "No such file"
denies "files of the host by its first process" "ls '/proc/1/root$secret'" "No such file"
gives "the root directory is the image's" 'ls -1 /' "bin
dev
entrypoint.sh
etc
home
$(run 'ls -d /lib' && [[ $TEXT == /lib$'\n' ]] && echo lib)
nix
proc
run
share
sys
tmp
usr
var
workspace"
gives "homes of others" 'ls -A /home' sandbox
gives "accounts of the host" "cut -d: -f1 /etc/passwd | paste -sd ' '" "root sandbox nobody"
gives "variables of the host" 'env | grep -c SECRET_OF_HOST' 0
# Of what is mounted, only the workspace and podman's own files are of the host.
gives "mounts of the host" \
	"sed -nE 's/^[0-9]+ [0-9]+ [0-9:]+ ([^ ]+) ([^ ]+) .* - ([^ ]+) .*/\\3 \\1 \\2/p' /proc/self/mountinfo |
		grep -vE '^(proc|sysfs|cgroup2?|devpts|mqueue|devtmpfs) |^tmpfs / | /$| /proc/[a-z_]+$| /etc/(hosts|hostname|resolv.conf)$| /run/.containerenv$' |
		cut -d' ' -f3" \
	/workspace
gives "devices" "find /dev -type b -o -type c -printf '%f ' | tr ' ' '\\n' | grep -vxE '(console|full|null|ptmx|random|tty|urandom|zero|[0-9]+|)'" ""
for kind in ipc mnt pid uts; do
	gives "the host's $kind namespace" "readlink /proc/self/ns/$kind | grep -cFx '$(readlink "/proc/$$/ns/$kind")'" 0
done

gives "processes of others" "ps -eo uid= | sort -un | tr -d ' '" 1000
gives "a process of the host" 'ps -eo args= | grep -c "[i]solation"' 0
gives "a signal to a process of the host" "kill -0 $$ 2>/dev/null && ps -o args= $$ | grep isolation" ""

gives "the user is not root" 'id -u; id -G' $'1000\n1000'
gives "capabilities" "grep ^Cap /proc/self/status | cut -f2 | sort -u" 0000000000000000
gives "new privileges" "sed -n 's/^NoNewPrivs:.//p' /proc/self/status" 1
gives "system calls are filtered" "sed -n 's/^Seccomp:.//p' /proc/self/status" 2
gives "programs that give privileges" 'find / -xdev -perm /6000 -type f 2>/dev/null' ""
denies "another user" 'setpriv --reuid 0 id' "Operation not permitted"
denies "another owner" 'chown 0 /workspace/file' "Operation not permitted" "Invalid argument"
denies "a mount" 'mkdir -p /tmp/m; mount -t tmpfs none /tmp/m' "must be superuser" "permission denied"
denies "a device" 'mknod /tmp/disk b 8 0' "Operation not permitted"
denies "another clock" 'date --set=2000-01-01' "Operation not permitted"
denies "another name for the host" 'hostname=x; echo x >/proc/sys/kernel/hostname' "Read-only file system" "Permission denied"
denies "a setting of the kernel" 'echo 1 >/proc/sys/vm/drop_caches' "Read-only file system" "Permission denied"
denies "the kernel's keys" 'echo b >/proc/sysrq-trigger' "No such file" "Read-only file system" "Permission denied"
denies "the kernel's memory" 'head -c 1 /proc/kcore' "Permission denied" "Operation not permitted" "No such file"
denies "groups of processes" 'd=$(find /sys/fs/cgroup -type d | head -n 1); mkdir $d/mine $d/*/mine' "Read-only file system" "Permission denied"

# Whoever makes a user namespace is root in it; that ends at its borders.
own="unshare --map-root-user --mount --pid --fork"
gives "a namespace of one's own" "$own id -u" 0
for command in "mount -o remount,rw /" "mount -o remount,bind,rw /" "mount --bind / /tmp" "mount -t proc proc /proc" \
	"mount -t sysfs sysfs /sys" "mount -o remount,bind,rw /proc/sys" "mknod /tmp/disk b 8 0" "cat /proc/kcore" "touch /etc/x"; do
	denies "a right outside of a namespace of one's own" "$own $command" \
		"ermission denied" "Operation not permitted" "Read-only file system" "wrong fs type" "No such file"
done

for path in / /bin /etc /etc/passwd /entrypoint.sh /home /nix/store /usr /var /proc /sys; do
	denies "a write to $path" "touch $path/x 2>&1 || echo x >>$path" "Read-only file system" "Permission denied" "No such file" "Is a directory"
done
# All directories that can be written, wherever: those in memory, and the workspace.
gives "directories that can be written" \
	"find / -path /proc -prune -o -path /sys -prune -o -type d -writable -print 2>/dev/null | grep -v -e ^/workspace/ -e ^/run/ -e ^/tmp/ -e ^/home/sandbox/ | sort" \
	$'/dev/mqueue\n/dev/shm\n/home/sandbox\n/run\n/tmp\n/var/tmp\n/workspace'
gives "where these are" "for d in /home/sandbox /run /tmp /var/tmp; do stat -fc %T \$d; done | sort -u" tmpfs

if [[ " $TMUX_DEBUG_SANDBOX_PODMAN_ARGS " == *" --network=none "* ]]; then
	gives "networks, where there is to be none" "ip -o link | cut -d: -f2" " lo"
fi
stop_server

# Limits. Where the kernel has no control groups for users, podman says so and there are none.
if in_sandbox "$ws" true 2>&1 | grep -q "Resource limits are not supported"; then
	echo "not tried: limits, which this kernel has for root only" >&2
else
	limits=(--podman-arg --memory=256m --podman-arg --memory-swap=256m --podman-arg --pids-limit=40)
	start_server_in "$SANDBOX_BASE" "${limits[@]}" "$ws" tmux-debug-mcp
	denies "more memory than there is" 'head -c 500m /dev/zero | tail | wc -c; exit ${PIPESTATUS[1]}' ""
	denies "more processes than there may be" 'for i in {1..60}; do sleep 9 & done' "Resource temporarily unavailable"
	stop_server
	# What is written to memory counts. The server would be the first to be killed.
	if in_sandbox "${limits[@]}" "$ws" bash -c 'head -c 500m /dev/zero >/tmp/large'; then fail "more memory than there is, in files"; fi
	# The limits that are set where nobody says otherwise.
	equal "$(in_sandbox "$ws" bash -c 'cat /sys/fs/cgroup/{,pids/}pids.max /sys/fs/cgroup/{memory.max,memory/memory.limit_in_bytes} 2>/dev/null')" \
		$'4096\n4294967296'
fi

echo "$tried escapes tried" >&2
pass
