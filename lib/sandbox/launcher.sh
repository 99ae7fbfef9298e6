# shellcheck shell=bash disable=SC2034,SC2154
# Runs a command in a container. launcher.nix sets before:
#
#   self                       the command's name
#   image, stream              the image's name, and a program that writes it
#   flags, more                arguments for podman; those in `more` come last
#   mounts                     four words each: source, destination, ro or rw, optional or required
#   writable                   directories in memory
#   passed                     variables that are passed in
#   has_nix                    `yes` if Nix works inside
#   is_shell                   `yes` if a shell runs where no command is given
#   protect                    for protect.sh
#   worktree                   for worktree.sh
#   network, hosts, limited, secrets, ports, host_ports, proxy_image, proxy_stream
#                              for network.sh

usage() {
	cat <<TEXT
usage: $self [--podman-arg ARG]... [DIR [COMMAND [ARGUMENT]...]]

Runs COMMAND in a container that has DIR (default: the current directory) at /workspace, and none of
your other files. Without COMMAND, it runs the sandbox's agent, or else a shell.

  --podman-arg ARG   one more argument for \`podman run\`; each word of
                     TMUX_DEBUG_SANDBOX_PODMAN_ARGS is also one

WRAPIX_NETWORK=limit closes the network except for the hosts in \`networkAllowlist\`. Connections
through a proxy are logged in ~/.local/state/tmux-debug-sandbox, where the end of a sandbox is also
told; TMUX_DEBUG_SANDBOX_PROXY_PODMAN_ARGS has arguments for the proxy's \`podman run\`.
TEXT
}

# There may be nobody to tell.
say() { printf '%s: %s\n' "$self" "$*" >&2 || true; }

fail() {
	say "$*"
	exit 2
}

# Two descriptors that no other program gets: that of the project, and that of end.sh.
held=250 alive=251
podman() { command podman "$@" {held}<&- {alive}>&-; }

# Sets `named` and `command`, and adds to `more`: from the environment first.
read_arguments() {
	local words word
	# No NUL ends it.
	IFS=$' \t\n' read -r -d '' -a words <<<"${TMUX_DEBUG_SANDBOX_PODMAN_ARGS-}" || true
	more+=("${words[@]}")
	while (($#)); do
		case $1 in
		--podman-arg)
			(($# > 1)) || fail "--podman-arg needs an argument."
			more+=("$2")
			shift
			;;
		--podman-arg=*) more+=("${1#*=}") ;;
		-h | --help)
			usage
			exit
			;;
		-*)
			fail "Unknown option: $1. Known: --podman-arg, --help." \
				"For a directory of that name, give ./$1"
			;;
		*) break ;;
		esac
		shift
	done
	for word in "${more[@]}"; do
		[[ ! $word =~ ^(-[it]*d[it]*|--(detach|entrypoint|rm))(=.*)?$ ]] ||
			fail "podman is given $word, which is for this launcher alone. Remove that argument."
	done
	named=${1-.}
	command=("${@:2}")
}

# Sets `dir` to the project's directory, `project` to its identity, `user` to who runs inside, and
# `homes` to the home directories that are not to be seen.
choose_directory() {
	local home
	[[ -d $named ]] || fail "${named@Q} is not a directory." \
		"The first argument is the directory for /workspace; the command follows it."
	own_home=none
	[[ -z ${HOME-} ]] || own_home=$(realpath --canonicalize-missing -- "$HOME")
	resolve "$named" project
	dir=$resolved
	identify "$dir"
	project=$identity

	# The user in the container is whoever runs this or, if that is root, whoever has the directory.
	user=$EUID
	as_user=("--userns=keep-id:uid=1000,gid=1000")
	if ((!EUID)); then
		user=$owner
		as_user=("--user=$user:$((group ? group : user))")
	fi

	mapfile -t homes < <(
		printf '%s\n' "${HOME-}"
		homes_of "$EUID"
		homes_of "$user"
	)
	for home in "${homes[@]}"; do
		[[ -z $home ]] || ! is_inside "$home" "$dir" ||
			fail "${dir@Q} contains a whole home directory. Choose a project's directory."
	done
	((user)) || fail "${dir@Q} belongs to root, and nothing in the sandbox runs as root." \
		"Give it to a user: chown -R 1000:1000 ${dir@Q}"
	# sudo hides the links in the path of the current directory.
	[[ -z ${SUDO_UID-} || $named == /* || $EUID != 0 || $user == "$SUDO_UID" ]] ||
		fail "${dir@Q} belongs to the user $user, and sudo hides the path that led here." \
			"If you mean this directory, give its path."
}

# Takes no program from the project: a sandbox can have put it there.
choose_programs() {
	local place places outside=()
	mapfile -d : -t places < <(printf %s "$PATH")
	for place in "${places[@]}"; do
		[[ $place != /* ]] || is_inside "$place" "$dir" || outside+=("$place")
	done
	PATH=$(IFS=: && echo "${outside[*]}")
	type -P podman >/dev/null ||
		fail "podman is missing. On NixOS: virtualisation.podman.enable = true." \
			"On Debian and Ubuntu: sudo apt-get install podman uidmap"
}

# Keeps the directory open while podman runs, so that no other directory gets its inode.
hold_directory() {
	{ exec {held}<"$dir/."; } 2>/dev/null || fail "${dir@Q} can't be read."
	[[ $(stat --dereference --format=%d:%i "/proc/$$/fd/$held") == "$project" ]] ||
		fail "${dir@Q} was replaced just now. $end_others"
}

# Each sets `mount` to podman's argument for one, which is a record of CSV.
bind() { mount="--mount=type=bind,\"source=${1//\"/\"\"}\",\"destination=${2//\"/\"\"}\",$3"; }
tmpfs() { mount="--mount=type=tmpfs,\"destination=${1//\"/\"\"}\",tmpfs-mode=1777"; }

# Mounts the file or directory $1 at $2, as ro or rw. A sandbox that runs on a directory above $1
# can still put a link in its place before podman mounts it: the entrypoint compares devices and
# inodes with `expected`, unless another kernel runs there, which has its own.
expected=$(</proc/sys/kernel/random/boot_id)
add_mount() {
	local mount
	identify "$1"
	bind "$@"
	flags+=("$mount")
	expected+=$'\n'"$identity $2"
}

# Mounts what the parameters say.
memory=("--tmpfs=/home/sandbox")
mount_parameters() {
	local i source mount place socket=${NIX_DAEMON_SOCKET_PATH:-/nix/var/nix/daemon-socket/socket}
	for ((i = 0; i < ${#mounts[@]}; i += 4)); do
		source=${mounts[i]}
		[[ $source != "~"* || -n ${HOME-} ]] ||
			fail "${source@Q} can't be mounted: HOME is not set. Set it."
		source=${source/#"~"/"${HOME-}"}
		resolve "$source" mount
		if [[ -e $resolved ]]; then
			add_mount "$resolved" "${mounts[i + 1]}" "${mounts[i + 2]}"
			[[ ${mounts[i + 1]} != /home/sandbox ]] || memory=()
		elif [[ ${mounts[i + 3]} == required ]]; then
			fail "${source@Q} can't be mounted: it does not exist." \
				"Create it, or make the mount \`optional\`."
		fi
	done
	for place in "${writable[@]}"; do
		tmpfs "$place"
		flags+=("$mount")
	done
	if [[ -n $has_nix ]]; then
		[[ -S $socket ]] || fail "Nix can't work inside: its daemon has no socket at ${socket@Q}." \
			"Start the daemon, or make a sandbox without \`nix\`."
		# The store has all that the image has.
		add_mount /nix/store /nix/store ro
		add_mount "${socket%/*}" /nix/var/nix/daemon-socket ro
	fi
}

# Gives the container a terminal where there is one, and the variables that are passed in.
pass_terminal() {
	flags+=("${passed[@]/#/--env=}")
	if [[ -t 0 && -t 1 ]]; then
		flags+=(--tty "--env=TERM=${TERM-xterm-256color}" --env=COLORTERM)
	fi
	# The image has a file of its own for hosts; with more of them, podman makes one.
	[[ " ${more[*]} " == *" --"@(add-host|hosts-file)* ]] || flags+=(--no-hosts)
}

# Tells a person at a terminal, in one line, where a shell or an agent is to work.
greet() {
	local path list="nothing is protected" kept=() leave=""
	[[ -t 0 && -t 1 && ${#command[@]} -eq 0 ]] || return 0
	mapfile -t kept < <(for path in "${!protected[@]}"; do
		[[ ${protected[$path]} == rw ]] || printf '%s\n' "$path"
	done | sort)
	if ((${#kept[@]})); then
		printf -v list ', %s' "${kept[@]:0:3}"
		list="read-only: ${list#, }"
		((${#kept[@]} <= 3)) || list+=" and $((${#kept[@]} - 3)) more"
	fi
	[[ -z $is_shell ]] || leave="; \`exit\` leaves"
	say "$dir is /workspace; $(describe_network); $list$leave."
}

# Loads the image $1, which the program $2 writes, unless podman has it. Another name for it says
# that a launcher has loaded it.
load() {
	local image=$1 stream=$2 logs reason driver
	! podman image exists "$image" || return 0
	say "loading the image"
	logs=$(mktemp -d)
	if ! "$stream" 2>"$logs/stream" {held}<&- | podman load --quiet >/dev/null 2>"$logs/load"; then
		# Where podman ends early, the other program tells that at length.
		[[ -s $logs/load ]] || mv "$logs/stream" "$logs/load"
		reason=$(grep . "$logs/load" | tail --lines=1)
		rm -r "$logs"
		fail "The image can't be loaded: $reason"
	fi
	rm -r "$logs"
	podman tag "$image" "$loaded:${image##*:}"
	driver=$(podman info --format '{{.Store.GraphDriverName}}')
	[[ $driver != vfs ]] ||
		say "podman copies each image as a whole here (vfs). With fuse-overlayfs they share parts."
	remove_images "$image" "$driver"
}

# Removes images that a launcher has loaded and that Nix has collected; where images share nothing,
# also older ones of the same name.
loaded=localhost/tmux-debug-sandbox
remove_images() {
	local image=$1 driver=$2 other tag names
	mapfile -t names < <(podman images --format '{{.Repository}}:{{.Tag}}' \
		--filter "reference=$loaded*")
	for other in "${names[@]}"; do
		tag=${other##*:}
		[[ $other == "$loaded"-* && " ${names[*]} " == *" $loaded:$tag "* ]] || continue
		if compgen -G "/nix/store/$tag-*" >/dev/null; then
			[[ $driver == vfs && $other != "$image" && ${other%:*} == "${image%:*}" ]] || continue
		fi
		# It may be in use.
		podman rmi "$loaded:$tag" "$other" >/dev/null 2>&1 || true
	done
}

main() {
	local status
	# With none of these, podman would take files of its own for them.
	[[ -e /proc/self/fd/0 ]] || exec </dev/null
	[[ -e /proc/self/fd/1 ]] || exec >/dev/null
	[[ -e /proc/self/fd/2 ]] || exec 2>/dev/null
	read_arguments "$@"
	choose_directory
	choose_programs
	hold_directory
	choose_report
	# Where in the container the project is.
	workspaces=(/workspace)
	mount_parameters
	protect_all
	mount_repository
	pass_terminal
	close_network

	load "$image" "$stream"
	[[ -z ${parts[*]} ]] || load "$proxy_image" "$proxy_stream"
	name=$self-$$-$(date +%s%N)
	remember
	make_sockets
	watch
	mount_project
	start_proxy
	greet

	# Here no file can be made. Where a container runs out of memory, podman's monitor would make
	# one, following links that a program in the container has made.
	cd /proc || exit
	flags+=("--label=tmux-debug-sandbox=$name" "--env=TMUX_DEBUG_SANDBOX_NAME=$self")
	flags+=("--env=TMUX_DEBUG_SANDBOX_MOUNTS=$expected")
	run_podman "${flags[@]}" "${as_user[@]}" "--name=$name" "${memory[@]}" "${more[@]}" \
		"$image" "${command[@]}"
	trap '' INT PIPE
	# The next sandbox may want the same ports.
	[[ " ${parts[*]} " != *" ports "* ]] ||
		podman rm --force --time=0 "$name-ports" &>/dev/null || true # it may be gone
	tell
	{ echo told >&"$alive"; } 2>/dev/null || true # whoever reads it may be gone
	exit "$status"
}

main "$@"
