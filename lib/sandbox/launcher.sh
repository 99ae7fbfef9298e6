# shellcheck shell=bash disable=SC2154
# Runs a command in a container. launcher.nix sets before: `image`, its name; `stream`, a program that writes it; `flags`
# for podman, and `more` of them, which come last; `mounts`, of four words each: source, destination, ro or rw, optional or
# required; `writable`, directories in memory; for protect.sh `protect`; for worktree.sh `worktree`; and for network.sh `network`, `hosts`, `limited`,
# `secrets`, `proxy_image` and `proxy_stream`.

usage() {
	cat <<'TEXT'
usage: tmux-debug-sandbox [--podman-arg ARG]... [DIR [COMMAND [ARGUMENT]...]]

Runs COMMAND in a container that has DIR (default: the current directory) at /workspace, and none of your other files.
Without COMMAND, it runs the sandbox's agent, or else a shell.

  --podman-arg ARG   one more argument for `podman run`; each word of TMUX_DEBUG_SANDBOX_PODMAN_ARGS is also one

WRAPIX_NETWORK=limit closes the network except for the hosts in `networkAllowlist`. Connections through a proxy are logged
in ~/.local/state/tmux-debug-sandbox; TMUX_DEBUG_SANDBOX_PROXY_PODMAN_ARGS has arguments for the proxy's `podman run`.
TEXT
}

say() { printf 'tmux-debug-sandbox: %s\n' "$*" >&2; }

fail() {
	say "$*"
	exit 2
}

# Whether a link is root's, and only root can write to the directories above it.
is_made_by_root() {
	local path=$1 owner mode above=(/)
	while path=${path%/*} && [[ -n $path ]]; do above+=("$path"); done
	while read -r owner mode; do
		((owner == 0 && (8#$mode & 8#22) == 0)) || return 1
	done < <(stat --format='%u %a' -- "${above[@]}")
	[[ $(stat --format=%u -- "$1") == 0 ]]
}

# Sets `resolved` to the path that a path leads to, without links. What runs in a sandbox can replace a directory by a
# link, so a link is followed only where no sandbox can have made it. Of a mount's source, this is also a link that stands
# in the home directory, which is not a sandbox's project. One that ends in the Nix store leads to nothing secret.
resolve() {
	local given=$1 kind=$2 rest=$1 followed=0 name link target end
	[[ $rest == /* ]] || rest=$PWD/$rest
	resolved=""
	while [[ -n $rest ]]; do
		name=${rest%%/*}
		rest=${rest#"$name"}
		rest=${rest#/}
		link=$resolved/$name
		if [[ -z $name || $name == . ]]; then
			continue
		elif [[ $name == .. ]]; then
			resolved=${resolved%/*}
			continue
		elif [[ ! -L $link ]]; then
			resolved=$link
			continue
		fi
		target=$(readlink -- "$link")
		end=$(realpath --canonicalize-missing -- "$link")
		if is_made_by_root "$link" || [[ $link == /nix/store/* || ($kind == mount && $resolved == "$own_home") ]]; then
			((++followed <= 40)) || fail "${given@Q} leads through too many links. Give the path it leads to."
			[[ $target != /* ]] || resolved=""
			rest=$target/$rest
		elif [[ $kind == mount && $end == /nix/store/* ]]; then
			resolved=$end
		else
			end=$(realpath --canonicalize-missing -- "$link/$rest")
			fail "${link@Q} is a link to ${target@Q}, and is not followed, since a sandbox could have made it." \
				"If you mean ${end@Q}, give that path instead of ${given@Q}."
		fi
	done
	resolved=${resolved:-/}
	[[ $resolved != *[$'\n\r']* ]] || fail "${resolved@Q} contains a line feed, which podman can't take. Rename it."
}

end_others="If a sandbox runs on a directory above it, end that sandbox first."

# Sets `identity` to the device and inode of what a path without links names, and `owner` and `group`.
identify() {
	local directory=${1%/}/ name=. place=""
	identity=""
	[[ ! -L $1 ]] || fail "${1@Q} is a link, and is not followed, since a sandbox could have made it."
	if [[ ! -d $1 ]]; then
		name=${1##*/}
		directory=${1%"$name"}
	fi
	{
		IFS= read -r place
		read -r owner group identity
	} < <(cd -- "$directory" && readlink /proc/self/cwd && stat --format='%u %g %d:%i' -- "./$name") || true # told below
	[[ -n $identity ]] || fail "${1@Q} can't be entered."
	[[ ${place%/}/ == "$directory" ]] || fail "${1@Q} was replaced just now. $end_others"
}

# The home directories that the user database has for a user's number. The system's own getent knows all of them, where
# there is one.
homes_of() {
	local number home
	while IFS=: read -r _ _ number _ _ home _; do
		[[ $number != "$1" ]] || printf '%s\n' "$home"
	done < <(PATH=/run/current-system/sw/bin:/usr/bin:/bin getent passwd "$1" 2>/dev/null || true; cat /etc/passwd)
}

# Arguments for podman from the environment, then those from the command line.
IFS=$' \t\n' read -r -d '' -a words <<<"${TMUX_DEBUG_SANDBOX_PODMAN_ARGS-}" || true # there is no NUL to end it
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
	-*) fail "Unknown option: $1. Known: --podman-arg, --help. For a directory of that name, give ./$1" ;;
	*) break ;;
	esac
	shift
done

named=${1-.}
[[ -d $named ]] || fail "${named@Q} is not a directory. The first argument is the directory for /workspace; the command follows it."
own_home=none
[[ -z ${HOME-} ]] || own_home=$(realpath --canonicalize-missing -- "$HOME")
resolve "$named" project
dir=$resolved
shift $(($# > 0))

identify "$dir"
project=$identity

# The user in the container is whoever runs this; or, where that is root, whoever has the directory.
user=$EUID
as_user=("--userns=keep-id:uid=1000,gid=1000")
if ((!EUID)); then
	user=$owner
	as_user=("--user=$user:$((group ? group : user))")
fi

mapfile -t homes < <(printf '%s\n' "${HOME-}"; homes_of "$EUID"; homes_of "$user")
for home in "${homes[@]}"; do
	[[ -z $home || $(realpath --canonicalize-missing -- "$home")/ != "${dir%/}"/* ]] ||
		fail "${dir@Q} contains a whole home directory. Choose a project's directory."
done

((user)) || fail "${dir@Q} belongs to root, and nothing in the sandbox runs as root. Give it to a user: chown -R 1000:1000 ${dir@Q}"
# sudo hides the links in the path of the current directory.
[[ -z ${SUDO_UID-} || $named == /* || $EUID != 0 || $user == "$SUDO_UID" ]] ||
	fail "${dir@Q} belongs to the user $user, and sudo hides the path that led here. If you mean this directory, give its path."

# No program is taken from the project: a sandbox can have put it there.
mapfile -d : -t places < <(printf %s "$PATH")
outside=()
for place in "${places[@]}"; do
	[[ $place != /* || $(realpath --canonicalize-missing -- "$place")/ == "${dir%/}"/* ]] || outside+=("$place")
done
PATH=$(IFS=: && echo "${outside[*]}")
command -v podman >/dev/null || fail "podman is missing. On NixOS: virtualisation.podman.enable = true. On Debian and Ubuntu: sudo apt-get install podman uidmap"

# It stays open while podman runs, so that no other directory gets its inode.
{ exec {held}<"$dir/."; } 2>/dev/null || fail "${dir@Q} can't be read."
[[ $(stat --dereference --format=%d:%i "/proc/$$/fd/$held") == "$project" ]] || fail "${dir@Q} was replaced just now. $end_others"

# A directory for this start, where no sandbox can write.
make_directory() { mktemp -d "${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}/tmux-debug-sandbox.XXXXXX"; }

# Each sets `mount` to podman's argument for one, which is a record of CSV.
bind() { mount="--mount=type=bind,\"source=${1//\"/\"\"}\",\"destination=${2//\"/\"\"}\",$3"; }
tmpfs() { mount="--mount=type=tmpfs,\"destination=${1//\"/\"\"}\",tmpfs-mode=1777"; }

add_mount() {
	local mount
	bind "$@"
	flags+=("$mount")
}

# A sandbox that runs on a directory above can still put a link in the place of what is mounted, before podman mounts it. The
# entrypoint compares devices and inodes, unless another kernel runs there, which has its own.
expected=$(</proc/sys/kernel/random/boot_id)
memory=("--tmpfs=/home/sandbox")
for ((i = 0; i < ${#mounts[@]}; i += 4)); do
	source=${mounts[i]}
	[[ $source != "~"* || -n ${HOME-} ]] || fail "${source@Q} can't be mounted: HOME is not set. Set it."
	source=${source/#"~"/"${HOME-}"}
	resolve "$source" mount
	if [[ -e $resolved ]]; then
		identify "$resolved"
		add_mount "$resolved" "${mounts[i + 1]}" "${mounts[i + 2]}"
		expected+=$'\n'"$identity ${mounts[i + 1]}"
		[[ ${mounts[i + 1]} != /home/sandbox ]] || memory=()
	elif [[ ${mounts[i + 3]} == required ]]; then
		fail "${source@Q} can't be mounted: it does not exist. Create it, or make the mount \`optional\`."
	fi
done

for place in "${writable[@]}"; do
	tmpfs "$place"
	flags+=("$mount")
done

# Where in the container the project is.
# shellcheck disable=SC2034
workspaces=(/workspace)
protect_all
mount_repository

if [[ -t 0 && -t 1 ]]; then
	flags+=(--tty "--env=TERM=${TERM-xterm-256color}" --env=COLORTERM)
fi

# None of what runs from here on gets the open directory: podman may start a process that stays.
load() {
	local image=$1 stream=$2 log
	! podman image exists "$image" {held}<&- || return 0
	say "loading the image"
	log=$(mktemp)
	if ! "$stream" 2>"$log" | podman load --quiet >&2 {held}<&-; then
		cat "$log" >&2
		rm "$log"
		exit 1
	fi
	rm "$log"
	remove_old_images
}

# Removes images of sandboxes that Nix has collected. The tag begins the name of what an image was made of.
remove_old_images() {
	local old
	while IFS= read -r old; do
		[[ ${old##*:} =~ ^[0-9a-z]{32}$ ]] || continue # somebody's own name
		compgen -G "/nix/store/${old##*:}-*" >/dev/null || podman rmi "$old" >/dev/null 2>&1 || true # it may be in use
	done < <(podman images --filter 'reference=localhost/tmux-debug-sandbox-*' --format '{{.Repository}}:{{.Tag}}' {held}<&-)
}

load "$image" "$stream"
close_network

# Where podman is killed, or told to end before it listens, the container would go on: a process that outlives podman
# removes it then. Afterwards it tells a person what was made of what runs on the host.
launcher=$$
name=tmux-debug-sandbox-$launcher-$(date +%s%N)
clean_up() {
	local container tries
	{
		tail --pid="$launcher" --follow /dev/null
		for container in "$name" "$name-hosts" "$name-keys"; do
			for ((tries = 0; tries < 20; tries++)); do
				podman container exists "$container" || break
				podman rm --force --time=0 "$container"
				sleep 0.2
			done
		done
		[[ -z $sockets ]] || rm -rf -- "$sockets"
		[[ -z $network_log ]] || find "${network_log%/*}" -name "${network_log##*/}-*.log" -empty -delete
	} &>/dev/null
	tell_changes
}

remember
exec {person}>/dev/null
[[ ! -t 2 ]] || exec {person}>&2
after_end="$(declare -p PATH launcher name sockets network_log dir protect telling awaited protected remembered)
$(declare -f clean_up tell_changes unprotected is_protected matching say)
clean_up </dev/null"
setsid "$BASH" -s <<<"$after_end" >/dev/null 2>&"$person" {held}<&- {person}>&- &
exec {person}>&-
mount_project
[[ -z $sockets ]] || start_proxy

# Here no file can be made. Where a container runs out of memory, podman's monitor would make one, following links that
# what runs in the container has made.
cd /proc || exit
exec podman run "${flags[@]}" "${as_user[@]}" "--name=$name" "--env=TMUX_DEBUG_SANDBOX_MOUNTS=$expected" "${memory[@]}" \
	"${more[@]}" "$image" "$@" {held}<&-
