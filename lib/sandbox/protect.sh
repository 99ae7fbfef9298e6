# shellcheck shell=bash disable=SC2154
# What of the project stays as it is. The launcher calls `protect_all`, `remember`, `mount_project`
# and `changes`; it has `fail`, `say`, `identify` and `add_mount`, and sets before:
#
#   dir, project    the project's directory, and its device and inode
#   user            who runs inside
#   own_home        the home directory of whoever runs the launcher
#   protect         patterns of paths in the project
#   workspaces      where in the container the project is
#
# What exists is mounted a second time, read-only. Each directory above it is mounted on itself,
# since what is mounted on can't be renamed or removed. Nothing can be mounted on what doesn't
# exist, so that is told afterwards if it was made.

# From existing paths to the mode in which they are mounted again.
declare -A protected=()

# Paths that say what runs on the host, besides those in `protect`: a file that leads git elsewhere,
# and what makes a repository of the project itself.
telling=(.git .git/commondir .git/config .git/config.worktree HEAD flake.nix shell.nix)
# Paths in the project that don't exist, where links in protected directories or git's configuration
# lead.
awaited=()
most=1000

# The directories of repositories in the project that git goes to: its own, and those of submodules.
repositories=()

# Refuses what can be changed by another name, and protects what links in the protected $1 lead to.
# A path may end with a line feed, which `$(...)` would drop.
protect_contents() {
	local path=$1 other link target direct
	other=$(find "$dir/$path" ! -type d -links +1 -print -quit)
	[[ -z $other ]] || fail "${other@Q} has a hard link, through which it could be changed." \
		"Replace it with a copy: cp -p"
	while IFS= read -r -d '' link; do
		IFS= read -r -d '' direct < <(readlink --zero -- "$link")
		[[ $direct == /* ]] || direct=${link%/*}/$direct
		IFS= read -r -d '' direct < <(
			realpath --zero --no-symlinks --canonicalize-missing -- "$direct"
		)
		IFS= read -r -d '' target < <(realpath --zero --canonicalize-missing -- "$link")
		[[ $dir/ != "${target%/}"/* ]] ||
			fail "${link@Q} leads to the whole project, which must stay writable. Remove it."
		[[ $target == "$dir"/* || $direct == "$dir"/* ]] || continue
		[[ $direct == "$target" ]] ||
			fail "${link@Q} leads through other links, which the sandbox could change." \
				"Make it lead straight to its target."
		[[ -e $target ]] || awaited+=("${target#"$dir"/}")
		((${#protected[@]} + ${#awaited[@]} <= most)) ||
			fail "More than $most paths would be protected. Remove links in ${path@Q}."
		protect_path "${target#"$dir"/}"
	done < <(find "$dir/$path" -type l -print0)
}

# Protects a path of the project, if it exists.
protect_path() {
	local path=$1 above="" rest=$1 part
	[[ ${protected[$path]-} != ro ]] || return 0
	[[ $path != *[$'\n\r']* ]] ||
		fail "${path@Q} contains a line feed, which podman can't take. Rename it."
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
	# Nothing in the store can be changed. At the end, what replaces the link is told.
	[[ -L $dir/${above:-.} || ! -L $dir/$path ]] ||
		[[ $(realpath -- "$dir/$path") != /nix/store/* ]] || return 0
	[[ ! -L $dir/${above:-$path} && ! -L $dir/$path ]] ||
		fail "${path@Q} in the project is a link or below one, which the sandbox could replace." \
			"Put the file itself there, or remove it from \`protect\`."
	if [[ -e $dir/$path ]]; then
		protected[$path]=ro
		protect_contents "$path"
	fi
}

# Prints the paths in the project that match a pattern, each with a NUL.
matching() {
	(
		cd -- "$dir" 2>/dev/null || exit # it is gone
		shopt -s nullglob dotglob
		IFS=""
		# shellcheck disable=SC2086
		set -- $1
		for path; do
			[[ ! -e $path && ! -L $path ]] || printf '%s\0' "$path"
		done
	)
}

# Whether a path is protected itself, or below one that is.
is_protected() {
	local path=$1
	while [[ ${protected[$path]-} != ro ]]; do
		[[ $path == */* ]] || return 1
		path=${path%/*}
	done
}

# Prints the paths of the submodules in the index, each with a NUL. Git reads the index without the
# project's configuration, by which it could run something.
submodules() {
	local empty line
	[[ -f $dir/.git/index ]] && command -v git >/dev/null || return 0
	empty=$(mktemp -d)
	mkdir "$empty/objects" "$empty/refs"
	echo "ref: refs/heads/main" >"$empty/HEAD"
	while IFS= read -r -d '' line; do
		printf '%s\0' "${line#*$'\t'}"
	done < <(GIT_INDEX_FILE=$dir/.git/index timeout 10 git -C / --git-dir="$empty" \
		ls-files --stage --sparse -z 2>/dev/null | grep --null-data '^160000 ')
	rm -r -- "$empty"
}

find_repositories() {
	local path
	[[ -d $dir/.git && ! -L $dir/.git ]] || return 0
	repositories=(.git)
	if [[ -d $dir/.git/modules && ! -L $dir/.git/modules ]]; then
		while IFS= read -r -d '' path; do
			repositories+=("$path")
		done < <(cd -- "$dir" && find .git/modules -type d -name objects -printf '%h\0' -prune)
	fi
	# A submodule can also have its repository in itself. Git follows no links to it.
	while IFS= read -r -d '' path; do
		[[ ! -d $dir/$path/.git || $(realpath -- "$dir/$path/.git") != "$dir/$path/.git" ]] ||
			repositories+=("$path/.git")
	done < <(submodules)
}

# Prints what a pattern stands for, each with a NUL: one that begins with `.git` holds for all
# repositories.
patterns_of() {
	if [[ $1 == .git/* ]] && ((${#repositories[@]})); then
		printf '%s\0' "${repositories[@]/%//"${1#.git/}"}"
	else
		printf '%s\0' "$1"
	fi
}

# Makes a file of git's where it has none, since nothing can be mounted on what doesn't exist.
make_file() {
	local path=$1 text=$2
	[[ ! -e $path && ! -L $path && -f ${path%/*}/HEAD ]] || return 0
	# A sandbox could have made links of the directories.
	[[ $(realpath -- "${path%/*}") == "${path%/*}" ]] || return 0
	(set -o noclobber && printf %s "$text" >"$path") || fail "${path@Q} can't be created."
	((EUID)) || chown --no-dereference "$user" "$path"
}

# Makes files that change nothing: each directory is its own common one, and other worktrees have an
# empty configuration.
make_files() {
	local own
	for own in "${repositories[@]}"; do
		make_file "$dir/$own/commondir" $'.\n'
	done
	while IFS= read -r -d '' own; do
		make_file "$dir/$own/config.worktree" ""
	done < <(matching ".git/worktrees/*")
}

# Protects the hooks and configuration files in the project that git's configuration names. Where
# git is missing, nothing runs them.
protect_named() {
	local own file key value files=()
	local keys='^(core\.hookspath|include\.path|includeif\..*\.path)$'
	command -v git >/dev/null || return 0
	for own in "${repositories[@]}"; do
		files+=("$dir/$own/config" "$dir/$own/config.worktree")
		# Git on the host also goes where the `.git` file of a submodule leads.
		[[ $own == .git/modules/* ]] || continue
		value=$(git -C / config --file "$dir/$own/config" core.worktree) || continue
		[[ $value == /* ]] || value=$dir/$own/$value
		value=$(realpath --no-symlinks --canonicalize-missing -- "$value/.git")
		[[ $value != "$dir"/* ]] || protect_path "${value#"$dir"/}"
	done
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
		done < <(git -C / config --file "$file" --null --get-regexp "$keys")
	done
}

# Says that direnv evaluates files which the sandbox can change.
warn_of_direnv() {
	local line path
	[[ -f $dir/.envrc ]] || return 0
	while IFS= read -r line; do
		[[ $line =~ ^[[:blank:]]*use[_\ ]+(flake|nix)([[:blank:]]|$) ]] || continue
		path=flake.nix
		[[ ${BASH_REMATCH[1]} == flake ]] || path=shell.nix
		is_protected "$path" ||
			say "direnv evaluates $path on this machine, and the sandbox can change it." \
				"Check it before you enter the directory, or add it to \`protect\`."
	done < <(head --bytes=65536 -- "$dir/.envrc" | tr -d '\0')
}

protect_all() {
	local pattern part path found
	find_repositories
	for pattern in "${protect[@]}"; do
		[[ $pattern != .git/commondir ]] || make_files
		[[ $pattern != .git/config ]] || protect_named
	done
	for pattern in "${protect[@]}"; do
		while IFS= read -r -d '' part; do
			mapfile -d '' -t found < <(matching "$part")
			# What doesn't exist may have a file in place of its directory.
			((${#found[@]})) || found=("$part")
			for path in "${found[@]}"; do
				protect_path "$path"
			done
		done < <(patterns_of "$pattern")
	done
	warn_of_direnv
}

# Prints which existing files run something on the host and can be changed: each path, and what
# tells a change, with NULs. Nothing is opened: the sandbox may have put there what has no end.
unprotected() {
	local pattern path
	{
		for pattern in "${protect[@]}" "${telling[@]}"; do
			matching "$pattern"
		done
		while IFS= read -r -d '' path; do
			printf '%s\0' "$path/.git"
		done < <(submodules)
		((!${#awaited[@]})) || printf '%s\0' "${awaited[@]}"
	} | while IFS= read -r -d '' path; do
		[[ -e $dir/$path || -L $dir/$path ]] || continue
		# A repository's directory changes with each commit.
		[[ -L $dir/$path || ! -d $dir/$path || " .git ${repositories[*]} " != *" $path "* ]] ||
			continue
		is_protected "$path" || printf '%s\0%s\0' "$path" \
			"$(stat --format='%d:%i %s %.9Y %.9Z' -- "$dir/$path")"
	done
}

# Remembers what `changes` is to compare.
declare -A remembered=()
remember() {
	local path state
	while IFS= read -r -d '' path && IFS= read -r -d '' state; do
		remembered[$path]=$state
	done < <(unprotected)
}

# Prints a line that names what was made or changed since.
changes() {
	local path state
	local -A changed=()
	while IFS= read -r -d '' path && IFS= read -r -d '' state; do
		[[ ${remembered[$path]-} == "$state" ]] || changed[${path@Q}]=""
	done < <(unprotected)
	((!${#changed[@]})) ||
		echo "made or changed since the sandbox started: $(printf '%s\n' "${!changed[@]}" | sort |
			paste -sd ' '). Check them before anything runs them."
}

# Mounts the project, with what is protected in it, at each of its places.
mount_project() {
	local place path
	for place in "${workspaces[@]}"; do
		add_mount "$dir" "$place" rw
		[[ $identity == "$project" ]] || fail "${dir@Q} was replaced just now. $end_others"
		for path in "${!protected[@]}"; do
			add_mount "$dir/$path" "$place/$path" "${protected[$path]}"
		done
	done
}
