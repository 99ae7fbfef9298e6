#!/usr/bin/env bash
# Prints a directory with a `nix` of another Debian release, made of that release's packages: nix-of.sh [trixie]
#
# Nothing is installed. What is downloaded stays in the user's cache.
set -euo pipefail

suite=${1:-trixie}
directory=${XDG_CACHE_HOME:-$HOME/.cache}/tmux-debug-mcp/nix-$suite
if [[ ! -x $directory/bin/nix ]]; then
	rm -rf "$directory"
	mkdir -p "$directory"/{bin,lists/partial,cache/archives/partial,root}
	# The address of this machine's mirror, in either of the formats that apt knows.
	# shellcheck disable=SC2016
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
	echo "deb $mirror $suite main" >"$directory/sources.list"
	: >"$directory/status"
	apt=(
		apt-get -qq --yes --no-install-recommends -o APT::Sandbox::User=root
		-o "Dir::Etc::sourcelist=$directory/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$directory/lists" -o "Dir::State::status=$directory/status" -o "Dir::Cache=$directory/cache"
	)
	"${apt[@]}" update >&2
	"${apt[@]}" --download-only install nix-bin >&2
	for package in "$directory"/cache/archives/*.deb; do
		dpkg-deb --extract "$package" "$directory/root"
	done
	rm -r "$directory/cache" "$directory/lists"
	libraries=$(echo "$directory"/root/usr/lib/*-linux-gnu)
	cat >"$directory/nix" <<-END
		#!/bin/sh
		# Nix starts itself to ask for builds elsewhere, which this one can't.
		NIX_CONFIG="build-hook =
		\$NIX_CONFIG"
		export NIX_CONFIG
		exec $(echo "$libraries"/ld-linux-*.so.*) --library-path $libraries $directory/root/usr/bin/nix "\$@"
	END
	chmod +x "$directory/nix"
	mv "$directory/nix" "$directory/bin/nix"
fi
echo "$directory/bin"
