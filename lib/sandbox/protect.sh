# shellcheck shell=bash disable=SC2154
# What of the project stays as it is. The launcher calls `protect_all`, `remember`, `mount_project` and `tell_changes`, and
# has `fail`, `say`, `identify` and `add_mount`. It sets before: `dir`, the project's; `user`, who has it; `own_home`, that of
# whoever runs this; `project`, its device and inode;
# `protect`, patterns of paths in the project; `workspaces`, where in the container the project is; `expected`, which gets
# the mounts.
#
# What is there is mounted again, so that it can't be written. Each directory above it is mounted on itself, so that it
# can't be moved away: what is mounted on can't be renamed or removed. Nothing can be mounted on what is not there, so a
# person is told afterwards what was made.

# From paths that are there to the mode in which they are mounted again.
declare -A protected=()

# What says what runs on the host, besides `protect`: also a file that leads git elsewhere, and what makes a repository of the
# project itself.
telling=(.git .git/commondir .git/config .git/config.worktree HEAD flake.nix shell.nix)
# Paths in the project that are not there, and to which links in protected directories lead.
awaited=()
most=1000

# Refuses what can be changed by another name, and protects what links in a protected directory lead to. A path may end with
# a line feed, which `$(...)` would drop.
protect_contents() {
	local path=$1 other link target direct
	other=$(find "$dir/$path" ! -type d -links +1 -print -quit)
	[[ -z $other ]] || fail "${other@Q} has a hard link, through which it could be changed. Replace it with a copy: cp -p"
	while IFS= read -r -d '' link; do
		IFS= read -r -d '' direct < <(readlink --zero -- "$link")
		[[ $direct == /* ]] || direct=${link%/*}/$direct
		IFS= read -r -d '' direct < <(realpath --zero --no-symlinks --canonicalize-missing -- "$direct")
		IFS= read -r -d '' target < <(realpath --zero --canonicalize-missing -- "$link")
		[[ $dir/ != "${target%/}"/* ]] || fail "${link@Q} leads to the whole project, which must stay writable. Remove it."
		[[ $target == "$dir"/* || $direct == "$dir"/* ]] || continue
		[[ $direct == "$target" ]] ||
			fail "${link@Q} leads through other links, which the sandbox could change. Make it lead straight to its target."
		[[ -e $target ]] || awaited+=("${target#"$dir"/}")
		((${#protected[@]} + ${#awaited[@]} <= most)) || fail "More than $most paths would be protected. Remove links in ${path@Q}."
		protect_path "${target#"$dir"/}"
	done < <(find "$dir/$path" -type l -print0)
}

protect_path() {
	local path=$1 above="" rest=$1 part
	[[ ${protected[$path]-} != ro ]] || return 0
	[[ $path != *[$'\n\r']* ]] || fail "${path@Q} contains a line feed, which podman can't take. Rename it."
	while [[ $rest == */* ]]; do
		part=${rest%%/*}
		rest=${rest#*/}
		above+=${above:+/}$part
		[[ ! -L $dir/$above ]] || break
		if [[ ! -e $dir/$above ]]; then
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
	# Nobody changes what is in the store. That the link still leads there is looked at in the end.
	[[ -L $dir/${above:-.} || ! -L $dir/$path || $(realpath -- "$dir/$path") != /nix/store/* ]] || return 0
	[[ ! -L $dir/${above:-$path} && ! -L $dir/$path ]] ||
		fail "${path@Q} in the project is a link or below one, which the sandbox could replace. Put the file itself there, or remove it from \`protect\`."
	if [[ -e $dir/$path ]]; then
		protected[$path]=ro
		protect_contents "$path"
	fi
}

# Prints the paths in the project that a pattern has, each with a NUL.
matching() {
	(
		cd -- "$dir" || exit
		shopt -s nullglob dotglob
		IFS=""
		# shellcheck disable=SC2086
		set -- $1
		for path; do
			[[ ! -e $path && ! -L $path ]] || printf '%s\0' "$path"
		done
	)
}

# Whether a path is, or is below, what can't be changed.
is_protected() {
	local path=$1
	while [[ ${protected[$path]-} != ro ]]; do
		[[ $path == */* ]] || return 1
		path=${path%/*}
	done
}

# Prints the directories of git's in the project, each with a NUL: the repository's own, and those of its submodules.
git_directories() {
	[[ -d $dir/.git && ! -L $dir/.git ]] || return 0
	printf '.git\0'
	[[ -d $dir/.git/modules && ! -L $dir/.git/modules ]] || return 0
	(cd -- "$dir" && find .git/modules -type d -name objects -printf '%h\0' -prune)
}

# Prints what a pattern stands for, each with a NUL. One of `.git` also holds for the submodules.
patterns_of() {
	local own
	if [[ $1 != .git/* ]]; then
		printf '%s\0' "$1"
		return
	fi
	printf '%s\0' "$1"
	git_directories | while IFS= read -r -d '' own; do
		[[ $own == .git ]] || printf '%s\0' "$own/${1#.git/}"
	done
}

# Makes a file of git's where it has none, since nothing can be mounted on what is not there.
make_file() {
	local path=$1 text=$2
	[[ ! -e $path && ! -L $path && -f ${path%/*}/HEAD ]] || return 0
	# A sandbox could have made links of the directories.
	[[ $(realpath -- "${path%/*}") == "${path%/*}" ]] || return 0
	(set -o noclobber && printf %s "$text" >"$path") || fail "${path@Q} can't be created."
	((EUID)) || chown --no-dereference "$user" "$path"
}

# Makes what says nothing new to git: each directory is its own common one, and other worktrees have no configuration.
make_files() {
	local own
	while IFS= read -r -d '' own; do
		make_file "$dir/$own/commondir" $'.\n'
	done < <(git_directories)
	while IFS= read -r -d '' own; do
		make_file "$dir/$own/config.worktree" ""
	done < <(matching ".git/worktrees/*")
}

# Protects the hooks and the configuration in the project that git's configuration names. Where git is missing, nothing
# runs them.
protect_named() {
	local own file key value files=()
	command -v git >/dev/null || return 0
	while IFS= read -r -d '' own; do
		files+=("$dir/$own/config" "$dir/$own/config.worktree")
		# Git on the host also goes to the repository of a submodule that the `.git` there leads to.
		[[ $own != .git ]] || continue
		value=$(git -C / config --file "$dir/$own/config" core.worktree) || continue
		[[ $value == /* ]] || value=$dir/$own/$value
		value=$(realpath --no-symlinks --canonicalize-missing -- "$value/.git")
		[[ $value != "$dir"/* ]] || protect_path "${value#"$dir"/}"
	done < <(git_directories)
	while ((${#files[@]})); do
		file=${files[0]}
		files=("${files[@]:1}")
		[[ -f $file && ! -L $file ]] || continue
		while IFS= read -r -d '' value; do
			key=${value%%$'\n'*}
			value=${value#*$'\n'}
			if [[ $value == \~/* ]]; then
				value=$own_home/${value#\~/}
			elif [[ $value != /* && $key == core.hookspath ]]; then
				value=$dir/$value
			elif [[ $value != /* ]]; then
				value=${file%/*}/$value
			fi
			value=$(realpath --no-symlinks --canonicalize-missing -- "$value")
			[[ $value == "$dir"/* ]] || continue
			[[ -e $value ]] || awaited+=("${value#"$dir"/}")
			is_protected "${value#"$dir"/}" || files+=("$value")
			protect_path "${value#"$dir"/}"
		done < <(git -C / config --file "$file" --null --get-regexp '^(core\.hookspath|include\.path|includeif\..*\.path)$')
	done
}

protect_all() {
	local pattern part path found line
	for pattern in "${protect[@]}"; do
		[[ $pattern != .git/commondir ]] || make_files
		[[ $pattern != .git/config ]] || protect_named
	done
	for pattern in "${protect[@]}"; do
		while IFS= read -r -d '' part; do
			mapfile -d '' -t found < <(matching "$part")
			# What is not there may have a file in place of its directory.
			((${#found[@]})) || found=("$part")
			for path in "${found[@]}"; do
				protect_path "$path"
			done
		done < <(patterns_of "$pattern")
	done
	[[ -f $dir/.envrc ]] || return 0
	while IFS= read -r line; do
		[[ $line =~ ^[[:blank:]]*use[_\ ]+(flake|nix)([[:blank:]]|$) ]] || continue
		path=flake.nix
		[[ ${BASH_REMATCH[1]} == flake ]] || path=shell.nix
		is_protected "$path" ||
			say "direnv evaluates $path on this machine, and the sandbox can change it. Check it before you enter the directory, or add it to \`protect\`."
	done < <(head --bytes=65536 -- "$dir/.envrc" | tr -d '\0')
}

# Prints what is there of what runs on the host and can be changed: each path, and what tells a change, with NULs. Nothing is
# opened: the sandbox may have put there what has no end.
unprotected() {
	local pattern path
	{
		for pattern in "${protect[@]}" "${telling[@]}"; do
			matching "$pattern"
		done
		((!${#awaited[@]})) || printf '%s\0' "${awaited[@]}"
	} | while IFS= read -r -d '' path; do
		[[ -e $dir/$path || -L $dir/$path ]] || continue
		# A directory changes with each commit.
		[[ $path != .git || ! -d $dir/.git || -L $dir/.git ]] || continue
		is_protected "$path" || printf '%s\0%s\0' "$path" "$(stat --format='%d:%i %s %.9Y %.9Z' -- "$dir/$path")"
	done
}

# Remembers what `tell_changes` is to compare.
declare -A remembered=()
remember() {
	local path state
	while IFS= read -r -d '' path && IFS= read -r -d '' state; do
		remembered[$path]=$state
	done < <(unprotected)
}

# Says what was made or changed since.
tell_changes() {
	local path state
	local -A told=()
	while IFS= read -r -d '' path && IFS= read -r -d '' state; do
		[[ ${remembered[$path]-} == "$state" ]] || told[${path@Q}]=""
	done < <(unprotected)
	((!${#told[@]})) || say "made or changed since the sandbox started: $(printf '%s\n' "${!told[@]}" | sort | paste -sd ' '). Check them before anything runs them."
}

# Adds the project, with what is protected in it, at each of its places.
mount_project() {
	local place path
	for place in "${workspaces[@]}"; do
		add_mount "$dir" "$place" rw
		expected+=$'\n'"$project $place"
		for path in "${!protected[@]}"; do
			identify "$dir/$path"
			add_mount "$dir/$path" "$place/$path" "${protected[$path]}"
			expected+=$'\n'"$identity $place/$path"
		done
	done
}
