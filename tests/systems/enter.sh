#!/usr/bin/env bash
# Mounts what a system needs, in namespaces of its own, and runs the tests in it.
#
#   enter.sh SYSTEM BELOW [NAME=VALUE...] -- [ARGUMENT...]
#
# With BELOW, SYSTEM has what is changed in the system BELOW, which stays as it is.
set -euo pipefail

system=$1 below=$2
shift 2
settings=()
while [[ $1 != -- ]]; do
	settings+=("$1")
	shift
done
shift

if [[ $below ]]; then
	# The directory for the kernel's work has to be in the same file system, and not in the other one.
	work=$(dirname "$system")/work
	mkdir "$work"
	if mount -t overlay -o "lowerdir=$below,upperdir=$system,workdir=$work" overlay /mnt; then
		system=/mnt
	else # within a container, whose files are an overlay themselves
		cp -a --reflink=auto --no-clobber "$below/." "$system"
	fi
fi
mount -t proc proc "$system/proc"
mount -t tmpfs -o mode=0755 tmpfs "$system/dev"
mkdir "$system/dev/pts" "$system/dev/shm"
for device in null zero full random urandom tty; do
	: >"$system/dev/$device"
	mount --bind "/dev/$device" "$system/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$system/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
ln -s pts/ptmx "$system/dev/ptmx"
ln -s /proc/self/fd "$system/dev/fd"

exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" \
	chroot "$system" /checkout/tests/systems/inside.sh "$@" </dev/null
