#!/usr/bin/env bash
# Prints a directory with the tmux of a release of Debian, such as sid, unpacked with the libraries it needs.
#
#   tests/systems/tmux.sh SUITE
set -euo pipefail

suite=${1?"which release? For instance: sid"}
command -v apt-get >/dev/null || {
	echo "tmux of Debian $suite comes by apt-get, which is missing here." >&2
	exit 1
}
root=${XDG_CACHE_HOME:-$HOME/.cache}/tmux-debug-mcp/tmux/$suite
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Package lists of that release alone, from where this machine gets packages.
mkdir -p "$work"/state/lists/partial "$work"/cache/archives/partial "$work/debs"
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
options=(-o "Dir::State=$work/state" -o "Dir::State::status=/dev/null" -o "Dir::Cache=$work/cache"
	-o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- -o APT::Sandbox::User=root)
apt-get "${options[@]}" -qq update >&2
version=$(apt-cache "${options[@]}" show tmux | sed -n 's/^Version: //p' | head -n 1)

# Its own loader runs it, with its own libraries and nothing of this machine's.
if [[ ! -x $root/$version/bin/tmux ]]; then
	packages=$(apt-cache "${options[@]}" depends --recurse --important tmux | grep '^[a-z]' | sort -u)
	unpacked=$work/$version
	mkdir -p "$unpacked/bin" "$root"
	# shellcheck disable=SC2086
	(cd "$work/debs" && apt-get "${options[@]}" -qq download $packages) >&2
	for package in "$work"/debs/*.deb; do
		dpkg-deb --extract "$package" "$unpacked"
	done
	libraries=$(dirname "$(find "$unpacked" -name 'libc.so.6' | head -n 1)")
	loader=$(find "$libraries" -name 'ld-linux-*' | head -n 1)
	cat >"$unpacked/bin/tmux" <<-TMUX
		#!/bin/sh
		exec "$root/$version/${loader#"$unpacked/"}" --library-path "$root/$version/${libraries#"$unpacked/"}" "$root/$version/usr/bin/tmux" "\$@"
	TMUX
	chmod +x "$unpacked/bin/tmux"
	rm -rf "${root:?}/$version"
	mv "$unpacked" "$root/$version"
fi
"$root/$version/bin/tmux" -V >&2
echo "$root/$version/bin"
