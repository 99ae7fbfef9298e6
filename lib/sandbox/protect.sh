# shellcheck shell=bash disable=SC2154
# What of the project stays as it is. The launcher calls `protect_all`, and has `fail`, `identify` and `add_mount`. It sets
# before: `dir`, the project's; `protect`, patterns of paths in it; `expected`, which gets the mounts.
#
# What is protected is mounted again, so that it can't be written. Each directory above it is mounted on itself, so that
# it can't be moved away: what is mounted on can't be renamed or removed.

declare -A protected=()
absent=()

# Adds a path in the project, once.
mount_again() {
	local path=$1 mode=$2
	[[ -z ${protected[$path]-} ]] || return 0
	protected[$path]=$mode
	identify "$dir/$path"
	add_mount "$dir/$path" "/workspace/$path" "$mode"
	expected+=$'\n'"$identity /workspace/$path"
}

# Refuses what can be changed by another name, and protects the files that links in a protected directory lead to.
protect_contents() {
	local path=$1 other link target
	other=$(find "$dir/$path" ! -type d -links +1 -print -quit)
	[[ -z $other ]] || fail "${other@Q} has another name, a hard link, by which it could be changed. Make a copy that has none: cp -p"
	while IFS= read -r -d '' link; do
		target=$(realpath --canonicalize-missing -- "$link")
		[[ $target != "$dir"/* || ! -f $target ]] || protect_path "${target#"$dir"/}"
	done < <(find "$dir/$path" -type l -print0)
}

protect_path() {
	local path=$1 above="" rest=$1 part
	[[ ${protected[$path]-} != ro ]] || return 0
	[[ $path != *[$'\n\r']* ]] || fail "${path@Q} has a line feed in it, which podman can't take. Rename it."
	while [[ $rest == */* ]]; do
		part=${rest%%/*}
		rest=${rest#*/}
		above+=${above:+/}$part
		[[ ! -L $dir/$above ]] || break
		if [[ ! -e $dir/$above ]]; then
			absent+=("$path")
			return
		elif [[ ! -d $dir/$above ]]; then
			# A file stands where the directory would be, as `.git` does in a worktree.
			path=$above
			rest=""
		elif [[ ${protected[$above]-} == ro ]]; then
			return
		else
			mount_again "$above" rw
		fi
	done
	[[ ! -L $dir/${above:-$path} && ! -L $dir/$path ]] ||
		fail "${path@Q} in the project is or is below a link, which the sandbox could replace. Put the file itself there, or leave it out of \`protect\`."
	if [[ -e $dir/$path ]]; then
		mount_again "$path" ro
		protect_contents "$path"
	else
		absent+=("$path")
	fi
}

protect_all() {
	local pattern path found
	for pattern in "${protect[@]}"; do
		mapfile -d '' -t found < <(
			cd -- "$dir" || exit
			shopt -s nullglob dotglob
			IFS=""
			# shellcheck disable=SC2086
			set -- $pattern
			((!$#)) || printf '%s\0' "$@"
		)
		((${#found[@]})) || found=("$pattern")
		[[ $pattern != *"*"* || ${found[0]} == "$pattern" ]] || absent+=("$pattern")
		for path in "${found[@]}"; do
			protect_path "$path"
		done
	done
	((!${#absent[@]})) || echo "tmux-debug-sandbox: not there, so what runs in the sandbox can make it: ${absent[*]}" >&2
}
