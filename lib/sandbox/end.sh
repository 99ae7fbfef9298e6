# shellcheck shell=bash disable=SC2034,SC2154
# The end of a sandbox: what is told and what is removed. The launcher calls `choose_report`,
# `watch`, `run_podman` and `tell`; it has `say` and `fail`, and sets before: `dir`, the project;
# `name`, the container's; `sockets` of network.sh.

# Where files about this start are, as the beginning of their paths; empty if there is no place for
# them outside of the project.
report=""
choose_report() {
	local state=${XDG_STATE_HOME:-${HOME:+$HOME/.local/state}}
	[[ -z $state || $state == /* ]] || state=$PWD/$state
	[[ -z $state ]] || is_inside "$state" "$dir" ||
		report=$state/tmux-debug-sandbox/$(date +%Y%m%dT%H%M%S)-$$
}

# Prints what its user should know of the end: a line each.
notes() {
	local log=$report-hosts.log count
	changes
	[[ -z $sockets || ! -s $log ]] || ! count=$(grep --count ' refused ' "$log") ||
		echo "connections refused: $count. Each is a line of $log"
}

keep() {
	mkdir -p -- "${report%/*}" &&
		printf '%s %s: %s\n' "$(date --iso-8601=seconds)" "${dir@Q}" "$1" >>"$report-end.log"
}

# Tells the notes to whoever started the sandbox, and keeps them in a file.
tell() {
	local note
	while IFS= read -r note; do
		say "$note"
		[[ -z $report ]] || keep "$note" 2>/dev/null || say "$report-end.log can't be written."
	done < <(notes)
}

# Removes the containers, which go on if podman is killed or told to end before it listens.
remove_containers() {
	local containers tries
	for ((tries = 0; tries < 20; tries++)); do
		mapfile -t containers < <(
			podman ps --all --quiet --filter "label=tmux-debug-sandbox=$name"
		)
		((${#containers[@]})) || break
		podman rm --force --time=0 "${containers[@]}"
		sleep 0.2
	done
	[[ -z $sockets ]] || rm -rf -- "$sockets"
	[[ -z $report ]] ||
		find "${report%/*}" -name "${report##*/}-*.log" -empty -delete || true # it may be gone
}

# What a process of its own does, which outlives the launcher: it reads `told` where the launcher
# has told the notes itself, and the end of its input where the launcher was killed.
outlive() {
	local word=""
	trap '' HUP INT QUIT TERM TTOU
	cd /
	exec >/dev/null {held}<&-
	# A client that reads what is written there would wait for this process as well.
	[[ -t 2 ]] || exec 2>/dev/null
	read -r word || true
	remove_containers &>/dev/null
	[[ $word == told ]] || tell
}

# Starts that process, in a group of its own. The launcher has the other end of the pipe, which no
# other program may keep open.
watch() {
	exec {alive}> >(
		set -m
		outlive <&0 &
	)
}

# Runs podman, passes signals on to it, and sets `status` to its exit status.
run_podman() {
	local child signalled signal signals=(HUP TERM USR1 USR2) alone=()
	# A terminal sends its signals to podman as well, which would get them twice.
	[[ -t 0 ]] || {
		signals+=(INT QUIT)
		alone=(setsid)
	}
	env --default-signal=INT,QUIT "${alone[@]}" podman run "$@" <&0 {held}<&- {alive}>&- &
	child=$!
	for signal in "${signals[@]}"; do
		# shellcheck disable=SC2064
		trap "signalled=$signal; kill -s $signal $child 2>/dev/null || true" "$signal"
	done
	[[ ! -t 0 ]] || trap signalled=yes INT QUIT
	while true; do
		signalled=""
		wait "$child" && status=0 || status=$?
		[[ $signalled != HUP ]] || await_end "$child"
		[[ -n $signalled && $signalled != HUP ]] || break
	done
	trap - "${signals[@]}" INT QUIT
}

# Gives a program whose terminal is gone a few seconds to end.
await_end() {
	local tries
	for ((tries = 0; tries < 50; tries++)); do
		kill -s 0 "$1" 2>/dev/null || break
		sleep 0.1
	done
}
