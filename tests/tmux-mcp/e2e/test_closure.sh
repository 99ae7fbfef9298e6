#!/usr/bin/env bash
# The Nix closure, mounted read-only into a container that has neither Python nor tmux: docs/harnesses.md.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

package=$(in_sandbox "$ws" realpath /bin/tmux-debug)
package=${package%/bin/*}

# Nothing but busybox, with the libraries that it may need.
root=$work/root
mkdir -p "$root"/{bin,dev,etc,nix/store,proc,sys,tmp}
busybox=$(command -v busybox)
cp "$busybox" "$root/bin/busybox"
{ ldd "$busybox" || true; } | grep -o '/[^ ]*' | sort -u | while read -r library; do
	mkdir -p "$root$(dirname "$library")"
	cp -L "$library" "$root$library"
done
# A tmux of Debian, which may stand in for nixpkgs', has its locale outside of the store.
if [[ -d /usr/lib/locale/C.utf8 ]]; then
	mkdir -p "$root/usr/lib/locale"
	cp -r /usr/lib/locale/C.utf8 "$root/usr/lib/locale"
fi
for name in sh cat echo ls sleep tail; do ln -s busybox "$root/bin/$name"; done

read -ra flags <<<"${TMUX_DEBUG_SANDBOX_PODMAN_ARGS-}"

in_container() {
	podman run "${flags[@]}" --rm --volume /nix/store:/nix/store:ro --rootfs "$root" "$@"
}

equal "$(in_container sh -c "command -v python3 tmux; echo neither")" neither
equal "$(in_container sh -c '
	alias tmux-debug='"$package/bin/tmux-debug"'
	tmux-debug create --name cat "echo up; exec cat" 2>/dev/null | tail -n 1
	tmux-debug send cat hello Enter 2>/dev/null | tail -n 1
	tmux-debug run "command -v python3 tmux; exit 3" || echo "status $?"
	tmux-debug replay cat --at 4 2>/dev/null
	tmux-debug doctor >/tmp/doctor && echo works || cat /tmp/doctor
')" $'up\nhello\nstatus 3\nup\nworks'
