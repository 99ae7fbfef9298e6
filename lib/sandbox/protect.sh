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
# what makes a repository of the project itself, and programs of other tools.
telling=(
	.git .git/commondir .git/config .git/config.worktree .git/objects/info/alternates
	".git/rebase-*" ".git/rebase-*/*" ".git/sequencer" ".git/sequencer/*"
	".git/worktrees/*/rebase-*" ".git/worktrees/*/rebase-*/*" ".git/worktrees/*/sequencer/*"
	HEAD flake.nix shell.nix .envrc.local .hg/hgrc .pre-commit-config.yaml lefthook.yml
)
# Paths in the project that don't exist, where links in protected directories or git's configuration
# lead.
awaited=()
most=4000

# The directories of repositories in the project that git goes to, each with the directories that it
# is for, which end with a line feed; and the `.git` of each other directory that git goes to.
declare -A repositories=()
git_files=()
# Indexes that git can't read.
unreadable=()
# Repositories outside that the project belongs to, each with the directories in the project that it
# is for, which end with a line feed.
declare -A foreign=()

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

# Prints the paths that match patterns in the directory $1 of the project, each with a NUL.
matching() {
	local base=$1 pattern
	shift
	(
		cd -- "$dir/$base" 2>/dev/null || exit # it is gone
		shopt -s nullglob dotglob
		IFS=""
		for pattern; do
			# shellcheck disable=SC2068
			for path in $pattern; do
				[[ ! -e $path && ! -L $path ]] || printf '%s\0' "${base:+$base/}$path"
			done
		done
	)
}

# Prints what matches patterns in the project, each with a NUL. Those that begin with `.git` hold
# for all repositories.
matching_all() {
	local own pattern ours=()
	for pattern; do
		[[ $pattern != .git/* ]] || ours+=("${pattern#.git/}")
	done
	matching "" "$@"
	for own in "${!repositories[@]}"; do
		[[ $own == .git ]] || matching "$own" "${ours[@]}"
	done
}

# Whether a path is protected itself, or below one that is.
is_protected() {
	local path=$1
	while [[ ${protected[$path]-} != ro ]]; do
		[[ $path == */* ]] || return 1
		path=${path%/*}
	done
}

# Prints the paths of the submodules in an index, each with a NUL, and fails if git can't read it.
# Git does so without the repository's configuration, by which it could run something.
submodules() {
	local index=$1 line status=0
	[[ -f $index && ! -L $index && -n $empty ]] || return 0
	GIT_INDEX_FILE=$index timeout 10 git -C / --git-dir="$empty" ls-files --stage --sparse -z \
		>"$empty/files" 2>/dev/null || status=1
	while IFS= read -r -d '' line; do
		printf '%s\0' "${line#*$'\t'}"
	done < <(LC_ALL=C grep --text --null-data '^160000 ' "$empty/files")
	return "$status"
}

# Makes a repository without anything, for the time of the search; $object_format is that of the
# indexes that are read with it.
empty=""
make_empty() {
	empty=$(mktemp -d)
	mkdir "$empty/objects" "$empty/refs"
	echo "ref: refs/heads/main" >"$empty/HEAD"
	printf '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = %s\n' \
		"$object_format" >"$empty/config"
}

# Whether the path $1, which contains no `..`, is one of the project's without a link in it.
is_plain() { [[ $1 == "$dir"/* && $(realpath --canonicalize-missing -- "$1") == "$1" ]]; }

# Adds what git finds in the directory $1 of the project ("" for all of it), whose index is $2, or
# in the part of it that $3 begins.
find_in() {
	local worktree=$1 index=$2 prefix=${3-} path found=()
	mapfile -d '' -t found < <(submodules "$index" && printf /)
	if ((!${#found[@]})) || [[ ${found[-1]} != / ]]; then
		unreadable+=("$index")
		return
	fi
	unset "found[-1]"
	for path in "${found[@]}"; do
		[[ $path != "$prefix"* ]] || find_repository "${worktree:+$worktree/}${path#"$prefix"}"
	done
}

# Adds the repository of a directory of the project, which its `.git` is or leads to.
find_repository() {
	local worktree=$1 path=$dir/${1:+$1/}.git target
	[[ -e $path || -L $path ]] || return 0
	if ! is_plain "$path"; then
		# Git follows it, wherever it leads.
		git_files+=("${path#"$dir"/}")
	elif [[ -d $path ]]; then
		add_repository "$path" "$worktree"
	elif [[ -f $path ]]; then
		git_files+=("${path#"$dir"/}")
		target=$(led_to "$path")
		if is_plain "$target" && [[ -d $target ]]; then
			add_repository "$target" "$worktree"
		elif [[ -d $target && $target != "$dir"/* ]]; then
			# It can't be seen inside, but its index says what is in the project.
			foreign[$target]+=./$worktree$'\n'
			find_in "$worktree" "$target/index"
		fi
	fi
}

add_repository() {
	local own=${1#"$dir"/} worktree=$2 path place known
	known=${repositories[$own]-}
	if [[ -n $known ]]; then
		[[ $known == *$'\n'"./$worktree"$'\n'* ]] || repositories[$own]+=./$worktree$'\n'
		return
	fi
	if ((${#repositories[@]} >= most)); then
		unreadable+=("$1/index")
		return
	fi
	repositories[$own]=$'\n'./$worktree$'\n'
	find_in "$worktree" "$1/index"
	while IFS= read -r -d '' path; do
		place=$(setting "$path/config" core.worktree) || place=""
		[[ -z $place || $place == /* ]] || place=$path/$place
		place=$(realpath --no-symlinks --canonicalize-missing -- "${place:-$path}")
		# A sandbox could have said that it is for another repository's directory.
		[[ $place == "$dir"/* && ! -d $place/.git ]] || place=$path
		[[ ! -f $place/.git ]] || git_files+=("${place#"$dir"/}/.git")
		add_repository "$path" "${place#"$dir"/}"
	done < <(modules_of "$1")
	for path in "$1"/worktrees/*/; do
		[[ -f ${path}gitdir ]] || continue
		place=$(led_to "${path}gitdir")
		is_plain "$place" || continue
		[[ -f $place ]] || continue
		git_files+=("${place#"$dir"/}")
		place=${place%/.git}
		repositories[$own]+=./${place#"$dir"/}$'\n'
		find_in "${place#"$dir"/}" "${path}index"
	done
}

# Prints the repositories for submodules in the one at $1, also of other worktrees, each with a NUL.
modules_of() {
	local place path
	for place in "$1/modules" "$1"/worktrees/*/modules; do
		[[ -d $place && ! -L $place ]] || continue
		while IFS= read -r -d '' path; do
			path=${path%/HEAD}
			# Remotes and logs have a HEAD as well.
			[[ ! -e $path/objects && ! -L $path/objects && ! -e $path/commondir ]] ||
				printf '%s\0' "$path"
		done < <(find "$place" -name HEAD -print0)
	done
}

# Prints a setting of a file of git's configuration, and fails if there is none.
setting() { [[ -f $1 && ! -L $1 ]] && timeout 10 git -C / config --file "$1" "$2" 2>/dev/null; }

find_repositories() {
	repositories=()
	git_files=()
	unreadable=()
	foreign=()
	local above=$dir
	object_format=sha1
	while [[ -n $above && ! -e $above/.git ]]; do above=${above%/*}; done
	[[ -n $above ]] && command -v git >/dev/null || return 0
	find_format "$above/.git"
	make_empty
	if [[ $above == "$dir" ]]; then
		find_repository ""
	elif [[ -d $above/.git ]]; then
		foreign[$above/.git]=$above$'\n'
		find_in "" "$above/.git/index" "${dir#"$above"/}/"
	fi
	rm -r -- "$empty"
	empty=""
}

# Sets `object_format` to that of the repository which a `.git` is or leads to.
find_format() {
	local own=$1
	[[ ! -f $own ]] || own=$(led_to "$own")
	[[ ! -f $own/commondir ]] || own=$(led_to "$own/commondir")
	object_format=$(setting "$own/config" extensions.objectFormat) || object_format=sha1
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
	for own in "${!repositories[@]}"; do
		make_file "$dir/$own/commondir" $'.\n'
	done
	while IFS= read -r -d '' own; do
		make_file "$dir/$own/config.worktree" ""
	done < <(matching_all ".git/worktrees/*")
}

# Protects what leads git to the repositories, and the hooks and configuration files in the project
# that their configuration names. Where git is missing, nothing runs them.
protect_named() {
	local own path file everywhere=$'\n'
	((!${#unreadable[@]})) ||
		fail "git can't read ${unreadable[0]@Q}, so submodules can't be protected." \
			"Mend it: git reset"
	for path in "${git_files[@]}"; do
		protect_path "$path"
	done
	# A bare repository is a project as well.
	if [[ -f $dir/HEAD && -d $dir/objects && -d $dir/refs ]]; then
		for path in commondir config hooks; do protect_path "$path"; done
	fi
	command -v git >/dev/null || return 0
	for own in "${!repositories[@]}"; do
		everywhere+=${repositories[$own]}
		for file in "$dir/$own"/{config,config.worktree} "$dir/$own"/worktrees/*/config.worktree; do
			protect_from "${repositories[$own]}" --file "$file"
		done
	done
	for own in "${!foreign[@]}"; do
		everywhere+=${foreign[$own]}
		for file in "$own"/{config,config.worktree}; do
			protect_from "${foreign[$own]}" --file "$file"
		done
		[[ ! -f $own/commondir ]] ||
			protect_from "${foreign[$own]}" --file "$(led_to "$own/commondir")/config"
	done
	protect_from "$everywhere" --global
	protect_from "$everywhere" --system
}

# Protects what a configuration names in the project; $1 are the directories that it is for.
protect_from() {
	local bases=$1 kind=$2 file=${3-} key value base path
	local keys='^(core\.hookspath|include\.path|includeif\..*\.path)$'
	[[ $kind != --file || (-f $file && ! -L $file) ]] || return 0
	while IFS= read -r -d '' value; do
		key=${value%%$'\n'*}
		value=${value#*$'\n'}
		[[ $value == /* || $key == core.hookspath || -z $file ]] || value=${file%/*}/$value
		# Hooks are looked for in each directory that the repository is for.
		while IFS= read -r base; do
			[[ -n $base ]] || continue
			path=$value
			[[ $base == /* ]] || base=$dir/$base
			[[ $value == /* ]] || path=$base/$value
			path=$(realpath --no-symlinks --canonicalize-missing -- "$path")
			[[ $path == "$dir"/* ]] || continue
			[[ -e $path ]] || awaited+=("${path#"$dir"/}")
			! is_protected "${path#"$dir"/}" || continue
			protect_path "${path#"$dir"/}"
			[[ $key == core.hookspath ]] || protect_from "$bases" --file "$path"
		done <<<"$bases"
	done < <(timeout 10 git -C / config "$kind" ${file:+"$file"} --null --type=path \
		--get-regexp "$keys" 2>/dev/null)
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

# Prints the links and FIFOs in the repositories, each with a NUL: git on the host goes through
# them.
links() {
	local own path
	for own in "${!repositories[@]}"; do
		[[ $own != *.git/modules/* ]] || continue
		while IFS= read -r -d '' path; do
			printf '%s\0' "$own/$path"
		done < <(cd -- "$dir/$own" && find . \( -type l -o -type p \) -printf '%P\0' -o \
			-path './objects/??' -prune)
	done
}

protect_all() {
	local pattern path found
	find_repositories
	for pattern in "${protect[@]}"; do
		[[ $pattern != .git/commondir ]] || make_files
		[[ $pattern != .git/config ]] || protect_named
	done
	# What doesn't exist may have a file in place of its directory.
	mapfile -d '' -t found < <(matching_all "${protect[@]}")
	for path in "${found[@]}" "${protect[@]}"; do
		protect_path "$path"
		((${#protected[@]} <= most)) ||
			fail "More than $most paths would be protected, as ${path@Q}. Remove some of them."
	done
	while IFS= read -r -d '' path; do
		! is_protected "$path" || continue
		path=$dir/$path
		[[ $(realpath --canonicalize-missing -- "$path") == "$dir"/* ]] ||
			say "${path@Q} is a link, through which git can write elsewhere." \
				"If you didn't make it, remove it."
	done < <(links)
	warn_of_direnv
}

# Prints which existing files run something on the host and can be changed: each path, and what
# tells a change, with NULs. Nothing is opened: the sandbox may have put there what has no end.
# Repositories are those that are known, or with `later` those that are there by then.
unprotected() {
	local pattern path known=" ${!repositories[*]} "
	(
		[[ $1 == now ]] || find_repositories
		matching_all "${protect[@]}" "${telling[@]}"
		printf '%s\0' "${!repositories[@]}" "${git_files[@]}" "${awaited[@]}"
		printf '%s\0' "${unreadable[@]#"$dir"/}"
		# A repository can become a submodule by a switch to another branch.
		[[ $1 == now ]] ||
			find "$dir" -name .git -newerct "@$started" -printf '%P\0' -prune 2>/dev/null
		links
	) | while IFS= read -r -d '' path; do
		[[ -n $path && (-e $dir/$path || -L $dir/$path) ]] || continue
		# A repository's directory changes with each commit.
		[[ -L $dir/$path || ! -d $dir/$path || $known != *" $path "* ]] || continue
		is_protected "$path" || printf '%s\0' "$dir/$path"
	done | xargs --null --no-run-if-empty stat --printf='%n\0%d:%i %s %.9Y %.9Z\0' -- 2>/dev/null ||
		true # some of it is gone
}

# Remembers what `changes` is to compare, and when, in seconds since the epoch.
declare -A remembered=()
started=""
remember() {
	local path state
	started=${EPOCHREALTIME/[^0-9]/.}
	while IFS= read -r -d '' path && IFS= read -r -d '' state; do
		remembered[$path]=$state
	done < <(unprotected now)
}

# Prints a line that names what was made or changed since.
changes() {
	local path state names others=""
	local -A changed=()
	while IFS= read -r -d '' path && IFS= read -r -d '' state; do
		path=${path#"$dir"/}
		[[ ${remembered[$dir/$path]-} == "$state" ]] || changed[${path@Q}]=""
	done < <(unprotected later)
	while IFS= read -r -d '' path; do
		changed[${path@Q}]=""
	done < <(own_changes)
	((${#changed[@]})) || return 0
	mapfile -t names < <(printf '%s\n' "${!changed[@]}" | sort)
	((${#names[@]} <= 20)) || others=" and $((${#names[@]} - 20)) more"
	echo "made or changed since the sandbox started: ${names[*]:0:20}$others." \
		"Check them before anything runs them."
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
