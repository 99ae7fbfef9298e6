# shellcheck shell=bash disable=SC2154
# What of the project stays as it is. The launcher calls `protect_all`, `prepare_project` and `mount_project`, and has `fail`,
# `identify`, `add_mount` and `make_directory`. It sets before: `dir`, the project's; `project`, its device and inode;
# `in_podman` and `account`; `protect`, patterns of paths in the project; `protectfs`, a program, or nothing; `expected`,
# which gets the mounts.
#
# Where all of it is there, it is mounted again, so that it can't be written. Each directory above it is mounted on itself,
# so that it can't be moved away: what is mounted on can't be renamed or removed. Nothing can be mounted on what is not
# there, so the project is then served by protectfs, which knows the names.

# From paths that are there to the mode in which they are mounted again.
declare -A protected=()
absent=()

# The directory of this user alone in which protectfs is mounted, at `project`; nothing without it.
served=""
# Paths that links in protected directories lead to.
led_to=()

# Refuses what can be changed by another name, and protects the files that links in a protected directory lead to.
protect_contents() {
	local path=$1 other link target direct
	other=$(find "$dir/$path" ! -type d -links +1 -print -quit)
	[[ -z $other ]] || fail "${other@Q} has another name, a hard link, by which it could be changed. Make a copy that has none: cp -p"
	while IFS= read -r -d '' link; do
		direct=$(readlink -- "$link")
		[[ $direct == /* ]] || direct=${link%/*}/$direct
		direct=$(realpath --no-symlinks --canonicalize-missing -- "$direct")
		target=$(realpath --canonicalize-missing -- "$link")
		[[ $target == "$dir"/* || $direct == "$dir"/* ]] || continue
		[[ $direct == "$target" && ! -d $target ]] ||
			fail "${link@Q} leads through other links, or to a directory, which the sandbox could change. Let it lead to a file, or put the file there."
		led_to+=("${target#"$dir"/}")
		protect_path "${target#"$dir"/}"
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
			protected[$above]=rw
		fi
	done
	[[ ! -L $dir/${above:-$path} && ! -L $dir/$path ]] ||
		fail "${path@Q} in the project is or is below a link, which the sandbox could replace. Put the file itself there, or leave it out of \`protect\`."
	if [[ -e $dir/$path ]]; then
		protected[$path]=ro
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
}

# Makes the place for protectfs, where it is needed.
prepare_project() {
	[[ -n $protectfs ]] && ((${#absent[@]})) || return 0
	served=$(make_directory)
	mkdir "$served/project"
}

# Serves the project without the names that are protected. Fails where the machine has no FUSE, and says why.
serve_project() {
	local path literal=("${led_to[@]}")
	for path in "${!protected[@]}"; do
		[[ ${protected[$path]} != ro ]] || literal+=("$path")
	done
	"${in_podman[@]}" "$protectfs" "$dir" "$project" "$served/project" "${account[@]}" "${protect[@]}" -- "${literal[@]}" {held}<&-
}

# Adds the project, with what is protected in it.
mount_project() {
	local path
	if [[ -n $served ]]; then
		if serve_project; then
			add_mount "$served/project" /workspace rw
			# `git init` would stop at hooks that it can't make.
			[[ -e $dir/.git/hooks ]] || flags+=(--env=GIT_TEMPLATE_DIR=)
			return
		fi
		# It may have failed when it was mounted.
		"${in_podman[@]}" umount --lazy "$served/project" 2>/dev/null || true
		rm -d "$served/project" "$served"
	fi
	((!${#absent[@]})) || echo "tmux-debug-sandbox: not there, so what runs in the sandbox can make it: ${absent[*]}" >&2
	add_mount "$dir" /workspace rw
	expected+=$'\n'"$project /workspace"
	for path in "${!protected[@]}"; do
		identify "$dir/$path"
		add_mount "$dir/$path" "/workspace/$path" "${protected[$path]}"
		expected+=$'\n'"$identity /workspace/$path"
	done
}
