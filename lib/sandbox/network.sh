# shellcheck shell=bash disable=SC2154
# The network of a sandbox that has none: a proxy outside lets a few hosts pass (proxy/proxy.sh). Its two parts, `hosts` and
# `keys`, have a container each, so that no bug in Squid reaches the keys.
#
# The launcher calls these functions, and has `fail`, `bind`, `load` and `make_directory`. It sets before: `network` for
# podman, or nothing; `hosts`, pairs of a name and a port; `limited`, more of them for WRAPIX_NETWORK=limit; `secrets`, of six
# words each: name, port, variable, header, prefix, variable for the address; `proxy_image` and `proxy_stream`.

# The parts of the proxy; the directory with one of sockets for each, and how the paths of their logs begin. Nothing without
# a proxy.
parts=()
sockets=""
network_log=""

# Leaves out of podman's arguments that there is no network, and refuses any other.
leave_out_network() {
	local kept=() word next=""
	for word in "${more[@]}"; do
		if [[ -n $next ]]; then
			word=$next=$word
			next=""
		fi
		case $word in
		--network | --net | --pod) next=$word ;;
		--network=none | --net=none) ;;
		--network=* | --net=* | --pod=* | --publish* | -p*)
			fail "This sandbox has no network of its own, but podman is given $word. Remove that argument, or make a sandbox with a network."
			;;
		*) kept+=("$word") ;;
		esac
	done
	more=("${kept[@]}")
}

# Gives podman the network, or the way to the proxy in place of one.
close_network() {
	case ${WRAPIX_NETWORK:-open} in
	open) ;;
	limit)
		[[ -z $network || $network == none ]] ||
			fail "WRAPIX_NETWORK=limit closes the network, but this sandbox has the network ${network@Q}. Unset WRAPIX_NETWORK, or make a sandbox without \`network\`."
		[[ -n $proxy_image || -z ${limited[*]} ]] ||
			fail "WRAPIX_NETWORK=limit needs a proxy, but this sandbox was made without one. Make the sandbox with \`networkAllowlist\`; [ ] allows just its profile's hosts."
		network=none
		hosts+=("${limited[@]}")
		;;
	*) fail "WRAPIX_NETWORK is ${WRAPIX_NETWORK@Q}. Set it to open or limit." ;;
	esac
	[[ $network != none ]] || leave_out_network
	[[ -z $network ]] || flags+=("--network=$network")
	((${#hosts[@]} + ${#secrets[@]} == 0)) || lead_to_proxy
}

# Tells podman and the programs inside of the proxy: where its sockets are, and which ports of the container's own are
# passed on to them.
lead_to_proxy() {
	local i variable port mount ports=""
	for ((i = 0; i < ${#secrets[@]}; i += 6)); do
		variable=${secrets[i + 2]}
		[[ -n ${!variable-} ]] || fail "$variable is not set. Set it to the key for ${secrets[i]}, which stays outside the sandbox: export $variable=..."
		port=$((3129 + i / 6))
		ports+="$port keys/key-$((i / 6)) "
		flags+=("--env=$variable=placeholder" "--env=${secrets[i + 5]}=http://127.0.0.1:$port")
	done
	if ((${#hosts[@]})); then
		ports+="3128 hosts/hosts"
		for variable in http_proxy HTTP_PROXY https_proxy HTTPS_PROXY; do
			flags+=("--env=$variable=http://127.0.0.1:3128")
		done
		flags+=("--env=NODE_USE_ENV_PROXY=1")
	fi
	flags+=("--env=no_proxy=127.0.0.1,localhost,::1" "--env=NO_PROXY=127.0.0.1,localhost,::1" "--env=TMUX_DEBUG_SANDBOX_PORTS=$ports")

	((!${#hosts[@]})) || parts+=(hosts)
	((!${#secrets[@]})) || parts+=(keys)
	make_logs
	load "$proxy_image" "$proxy_stream"
	sockets=$(make_directory)
	mkdir "${parts[@]/#/"$sockets/"}"
	((EUID)) || chown -R "$user" "$sockets"
	bind "$sockets" /run/proxy ro
	flags+=("$mount")
}

# Makes the logs of connections, where no sandbox can write.
make_logs() {
	local part
	[[ -n ${XDG_STATE_HOME-}${HOME-} ]] || fail "Connections are logged in the home directory, but HOME is not set. Set HOME or XDG_STATE_HOME."
	network_log=${XDG_STATE_HOME:-$HOME/.local/state}/tmux-debug-sandbox/$(date +%Y%m%dT%H%M%S)-$$
	[[ $(realpath --canonicalize-missing -- "$network_log") != "${dir%/}"/* ]] ||
		fail "Connections are logged in ${network_log@Q}, which is in the project. Set XDG_STATE_HOME to another directory."
	mkdir -p -- "${network_log%/*}"
	for part in "${parts[@]}"; do
		: >"$network_log-$part.log"
	done
}

start_part() {
	local part=$1 i mount words=() part_flags=()
	case $part in
	hosts)
		for ((i = 0; i < ${#hosts[@]}; i += 2)); do
			words+=(host "${hosts[i]}" "${hosts[i + 1]}")
		done
		;;
	keys)
		for ((i = 0; i < ${#secrets[@]}; i += 6)); do
			words+=(key "${secrets[@]:i:5}")
			part_flags+=("--env=${secrets[i + 2]}")
		done
		;;
	esac
	bind "$sockets/$part" /run/proxy rw
	IFS=$' \t\n' read -r -d '' -a more_for_proxy <<<"${TMUX_DEBUG_SANDBOX_PROXY_PODMAN_ARGS-}" || true
	podman run --detach --rm --pull=never --cap-drop=all --security-opt=no-new-privileges --read-only --http-proxy=false \
		--pids-limit=512 --memory=512m --log-driver=k8s-file "--log-opt=path=$network_log-$part.log" --log-opt=max-size=10mb \
		"${as_user[@]}" "--name=$name-$part" "$mount" "${part_flags[@]}" "${more_for_proxy[@]}" \
		"$proxy_image" "${words[@]}" >/dev/null {held}<&-
}

wait_for_part() {
	local part=$1 tries
	for ((tries = 0; tries < 400; tries++)); do
		[[ ! -e $sockets/$part/ready ]] || return 0
		podman container exists "$name-$part" || break
		sleep 0.05
	done
	cat "$network_log-$part.log" >&2
	fail "The proxy does not start. Its output is above."
}

# Starts the proxy, and waits until it answers.
start_proxy() {
	local part starting=()
	for part in "${parts[@]}"; do
		start_part "$part" &
		starting+=("$!")
	done
	wait "${starting[@]}" || true # a part that did not start is told below
	for part in "${parts[@]}"; do
		wait_for_part "$part"
	done
}
