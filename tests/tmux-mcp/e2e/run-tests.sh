#!/usr/bin/env bash
# Runs the scripts that are named, in this account: run-tests.sh DIRECTORY NAME...; the directory has storage.conf.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# Root's podman looks for the place of its storage in the file, others' in the environment.
export CONTAINERS_STORAGE_CONF=$1/storage.conf XDG_DATA_HOME=$1 TMPDIR=$1/tmp
mkdir -p "$TMPDIR"
shift

who="as $(id -un)"
((EUID)) || who="as root"

# The flags that this machine needs, where its user has not said: the first of these with which a container runs.
if [[ -z ${TMUX_DEBUG_SANDBOX_PODMAN_ARGS+set} ]]; then
	mkdir "$TMPDIR/probe"
	((EUID)) || chown 1000:1000 "$TMPDIR/probe"
	found=""
	for flags in "" "--runtime runc" "--runtime runc --network=none" \
		"--runtime runc --network=none --ulimit nofile=1024:1024 --ulimit nproc=2048:2048"; do
		if TMUX_DEBUG_SANDBOX_PODMAN_ARGS=$flags "$SANDBOX_BASE" "$TMPDIR/probe" true 2>>"$TMPDIR/probe.log"; then
			found=yes
			break
		fi
	done
	[[ -n $found ]] || {
		echo "FAIL: no container runs on this machine $who:" >&2
		cat "$TMPDIR/probe.log" >&2
		exit 1
	}
	export TMUX_DEBUG_SANDBOX_PODMAN_ARGS=$flags
fi
echo "$who, with podman's flags: ${TMUX_DEBUG_SANDBOX_PODMAN_ARGS:-none}"

failed=() skipped=()
for name in "$@"; do
	script=test_$name.sh
	[[ $name != context_isolation ]] || script=../../judges/tmux-mcp.sh
	status=0
	timeout --foreground --kill-after=10 600 "./$script" || status=$?
	case $status in
	0) ;;
	77) skipped+=("$name") ;;
	*) failed+=("$name") ;;
	esac
done
left=$(podman ps --all --quiet)
[[ -z $left ]] || failed+=("nothing is left: $left")
if ((${#failed[@]})); then
	echo "failed $who: ${failed[*]}" >&2
	exit 1
fi
echo "$(($# - ${#skipped[@]})) passed $who, 0 failed, ${#skipped[@]} skipped${skipped[*]:+: ${skipped[*]}}"
