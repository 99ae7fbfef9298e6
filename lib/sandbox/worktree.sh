# shellcheck shell=bash disable=SC2154
# Git in a linked worktree, whose repository is outside the project. The launcher calls
# `mount_repository`; it has `fail`, `say`, `resolve` and `add_mount`, and sets before:
#
#   dir           the project's directory
#   worktree      `yes` if the repository is to be mounted
#   user          who runs inside
#   homes         directories that are not to be seen
#   workspaces    where in the container the project is, which gets one place more
#
# The repository is mounted at /run/repository, read-only. Where git looks for it, at its path on
# the host, is a directory in memory: what a commit writes is mounted there, and the entrypoint
# makes links to all else. So git can make its lock for packed-refs, which it needs to delete a
# reference, while at the top of the repository nothing can be made.

# Prints, as an absolute path, where the first line of a file of git's leads.
led_to() {
	local line=""
	# There may be no line feed.
	IFS= read -r line < <(head --bytes=4096 -- "$1" | tr -d '\0') || true
	line=${line#gitdir: }
	[[ $line == /* ]] || line=${1%/*}/$line
	realpath --no-symlinks --canonicalize-missing -- "$line"
}

# Refuses a repository that does not say itself that this project is its worktree. A sandbox can
# have written the project's `.git`, but nothing in the repository.
check_repository() {
	local own=$1 common=$2 path home
	for path in "$own"/{gitdir,commondir} "$common"/{config,objects/info,refs}; do
		[[ ! -L $path && (-f $path || -d $path) ]] ||
			fail "\`.git\` leads to ${own@Q}, where ${path@Q} is missing." \
				"If you moved the repository: git worktree repair"
		[[ $(stat --format=%u -- "$path") == "$user" ]] ||
			fail "${path@Q} belongs to another user, so this repository is not mounted."
	done
	[[ $(led_to "$own/gitdir") == "$dir/.git" ]] ||
		fail "${own@Q} is not for this project, but for $(led_to "$own/gitdir")." \
			"If you moved it: git worktree repair"
	[[ $(led_to "$own/commondir") == "$common" ]] ||
		fail "${own@Q} belongs to a repository other than ${common@Q}."
	for home in "${homes[@]}" "$dir"; do
		[[ -z $home ]] || ! is_inside "$home" "$common" ||
			fail "The repository ${common@Q} contains ${home@Q}, which would be mounted, too." \
				"Move the repository."
	done
	for path in "$common" "$dir"; do
		[[ ! $path/ =~ ^/(bin|dev|etc|home/sandbox|nix|proc|share|sys|usr|workspace)/ ]] ||
			fail "${path@Q} is where the sandbox has its own files." \
				"Move the worktree and its repository elsewhere."
	done
	[[ -d $common/reftable || -d $common/logs ]] ||
		fail "${common@Q} has no logs, without which stashes would be lost." \
			"Create the directory: mkdir ${common@Q}/logs"
	# git reads it on the host, now or once somebody asks for it. Where it is, it can be mounted.
	path=$own/config.worktree
	if [[ ! -e $path && ! -L $path ]]; then
		(set -o noclobber && : >"$path") || fail "${path@Q} can't be created."
		((EUID)) || chown --no-dereference "$user" "$path"
	fi
}

# Mounts each directory down to a submodule's repository on itself, so that it can't be moved.
declare -A with_modules=()
mount_modules() {
	local path=$1 rest=$2
	while [[ -n $rest ]]; do
		path+=/${rest%%/*}
		[[ $rest == */* ]] && rest=${rest#*/} || rest=""
		[[ -z ${with_modules[$path]-} ]] || continue
		with_modules[$path]=yes
		add_mount "$path" "$path" rw
	done
}

# Prints what was made in the directory that the worktree has in its repository, of which git on the
# host runs something or through which it writes, each with a NUL.
own_directory=""
own_changes() {
	[[ -n $own_directory ]] || return 0
	find "$own_directory" -newerct "@$started" \( -type l -o -type p -o -path '*/rebase-*' -o \
		-path '*/sequencer/*' -o -path '*/modules/*/config' -o \
		-path '*/modules/*/hooks/*' \) -print0
}

# Mounts the repository of a linked worktree, or says why git will not work.
mount_repository() {
	local own common path mount
	[[ -f $dir/.git && ! -L $dir/.git ]] || return 0
	own=$(led_to "$dir/.git")
	[[ $own != "$dir"/* ]] || return 0
	common=${own%/worktrees/*}
	if [[ $own != "$common"/worktrees/* || ${own#"$common"/worktrees/} == */* ]]; then
		say "git will not work in the sandbox: the repository is outside the project," \
			"at ${own@Q}."
		return
	elif [[ -z $worktree ]]; then
		say "git will not work in the sandbox: this is a worktree of ${common@Q}." \
			"With \`worktree = true\` it works, and all branches can be read."
		return
	fi
	resolve "$own" project
	own=$resolved
	[[ $own != "$dir"/* ]] || return 0
	common=${own%/worktrees/*}
	check_repository "$own" "$common"
	add_mount "$common" /run/repository ro
	tmpfs "$common"
	flags+=("$mount" --tmpfs=/var/packed-refs "--env=TMUX_DEBUG_SANDBOX_REPOSITORY=$common")
	add_mount "$common/worktrees" "$common/worktrees" ro
	for path in "$common"/{objects,refs,reftable,logs} "$own"; do
		[[ ! -d $path ]] || add_mount "$path" "$path" rw
	done
	for path in "$common/objects/info" "$own"/{commondir,gitdir,config.worktree}; do
		[[ ! -e $path ]] || add_mount "$path" "$path" ro
	done
	# The worktree has repositories of its own for its submodules.
	while IFS= read -r -d '' path; do
		make_file "$path/commondir" $'.\n'
		if [[ ! -e $path/hooks && ! -L $path/hooks ]]; then
			mkdir -- "$path/hooks"
			((EUID)) || chown --no-dereference "$user" "$path/hooks"
		fi
		mount_modules "$own" "${path#"$own"/}"
		for path in "$path"/{commondir,config,config.worktree,hooks}; do
			[[ ! -e $path ]] || add_mount "$path" "$path" ro
		done
	done < <(modules_of "$own")
	own_directory=$own
	# Where the repository looks for the worktree.
	workspaces+=("$dir")
	# A relative path leads to the repository from there alone.
	[[ $(head --bytes=9 -- "$dir/.git") == "gitdir: /" ]] || flags+=("--workdir=$dir")
}
