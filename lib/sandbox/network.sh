# shellcheck shell=bash disable=SC2154
# The network of a sandbox. Where it has none of its own, a proxy outside lets a few hosts pass, and
# single ports are led through sockets, in any network (proxy/proxy.sh). Each of `hosts`, `keys` and
# `ports` has a container of its own, so that no bug in Squid reaches the keys.
#
# The launcher calls `close_network`, `make_sockets`, `start_proxy` and `describe_network`; it has
# `fail` and `bind`. It sets before:
#
#   network            podman's, or nothing
#   hosts, limited     pairs of a name and a port; the latter are for WRAPIX_NETWORK=limit
#   secrets            six words each: name, port, variable, header, prefix, variable for the
#                      address
#   ports              pairs of a port of this machine and one of the container, where it leads
#   host_ports         ports of this machine that can be reached from inside
#   proxy_image        where a proxy may be needed

# The containers beside the sandbox, and the directory that has one of sockets for each.
parts=()
sockets=""

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
			fail "This sandbox has no network of its own, but podman is given $word." \
				"Remove that argument, or make a sandbox with a network, or with \`ports\`."
			;;
		*) kept+=("$word") ;;
		esac
	done
	more=("${kept[@]}")
}

# Chooses podman's network and the parts of the proxy, and refuses what can't be.
close_network() {
	local i variable
	case ${WRAPIX_NETWORK:-open} in
	open) ;;
	limit)
		[[ -z $network || $network == none ]] ||
			fail "WRAPIX_NETWORK=limit closes the network, but this sandbox has the network" \
				"${network@Q}. Unset WRAPIX_NETWORK, or make a sandbox without \`network\`."
		[[ -n $proxy_image || -z ${limited[*]} ]] ||
			fail "WRAPIX_NETWORK=limit needs a proxy, but this sandbox was made without one." \
				"Make the sandbox with \`networkAllowlist\`; [ ] allows just its profile's hosts."
		network=none
		hosts+=("${limited[@]}")
		;;
	*) fail "WRAPIX_NETWORK is ${WRAPIX_NETWORK@Q}. Set it to open or limit." ;;
	esac
	[[ -z $has_nix || $network != none ]] ||
		fail "Nix inside needs an open network: the host's daemon fetches whatever it is asked for."
	[[ $network != none ]] || leave_out_network
	[[ -z $network ]] || flags+=("--network=$network")

	((!${#hosts[@]})) || parts+=(hosts)
	((!${#secrets[@]})) || parts+=(keys)
	((!${#ports[@]} && !${#host_ports[@]})) || parts+=(ports)
	for ((i = 0; i < ${#secrets[@]}; i += 6)); do
		variable=${secrets[i + 2]}
		[[ -n ${!variable-} ]] ||
			fail "$variable is not set. Set it to the key for ${secrets[i]}, which stays outside" \
				"the sandbox: export $variable=..."
	done
	for ((i = 0; i < ${#ports[@]}; i += 2)); do
		! { : <>"/dev/tcp/127.0.0.1/${ports[i]}"; } 2>/dev/null ||
			fail "Port ${ports[i]} of this machine is in use. End what uses it, or give another" \
				"one: ports = [ \"OTHER:${ports[i + 1]}\" ];"
	done
	((!${#parts[@]})) || check_logs
}

# Says in a few words what can be reached.
describe_network() {
	local word last chosen=$network
	for word in "${more[@]}"; do
		[[ ${last-} != --@(net|network) ]] || chosen=$word
		[[ $word != --@(net|network)=* ]] || chosen=${word#*=}
		last=$word
	done
	if [[ $chosen != none ]]; then
		echo "the network is ${chosen:-open}"
	elif ((${#hosts[@]} + ${#secrets[@]})); then
		echo "the network is closed but for $(((${#hosts[@]}) / 2 + ${#secrets[@]} / 6)) hosts"
	else
		echo "there is no network"
	fi
}

# Refuses places for the logs of connections where a sandbox can write.
check_logs() {
	[[ -n ${XDG_STATE_HOME-}${HOME-} ]] ||
		fail "Connections are logged in the home directory, but HOME is not set." \
			"Set HOME or XDG_STATE_HOME."
	[[ -n $report ]] ||
		fail "Connections are logged in ${XDG_STATE_HOME:-$HOME/.local/state}, which is in the" \
			"project. Set XDG_STATE_HOME to another directory."
}

# Makes the logs and the sockets, and tells podman and the programs inside of the latter: which of
# the container's ports are led outside, and which are led to from there.
make_sockets() {
	local i part variable port mount forwarded="" published=""
	((${#parts[@]})) || return 0
	mkdir -p -- "${report%/*}" || fail "Connections are logged in ${report%/*}. Make it writable."
	for part in "${parts[@]}"; do
		: >"$report-$part.log"
	done
	# No sandbox can write there.
	sockets=$(mktemp -d "${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}/tmux-debug-sandbox.XXXXXX")
	mkdir "${parts[@]/#/"$sockets/"}"
	for ((i = 0; i < ${#secrets[@]}; i += 6)); do
		port=$((3129 + i / 6))
		forwarded+="$port keys/key-$((i / 6)) "
		flags+=("--env=${secrets[i + 2]}=placeholder")
		flags+=("--env=${secrets[i + 5]}=http://127.0.0.1:$port")
	done
	for port in "${host_ports[@]}"; do
		forwarded+="$port ports/$port "
	done
	if ((${#hosts[@]})); then
		forwarded+="3128 hosts/hosts"
		for variable in http_proxy HTTP_PROXY https_proxy HTTPS_PROXY; do
			flags+=("--env=$variable=http://127.0.0.1:3128")
		done
		flags+=("--env=NODE_USE_ENV_PROXY=1")
	fi
	flags+=("--env=no_proxy=127.0.0.1,localhost,::1" "--env=NO_PROXY=127.0.0.1,localhost,::1")
	flags+=("--env=TMUX_DEBUG_SANDBOX_PORTS=$forwarded")
	bind "$sockets" /run/proxy ro
	flags+=("$mount")
	if ((${#ports[@]})); then
		# Programs inside listen here.
		mkdir "$sockets/inside"
		bind "$sockets/inside" /run/inside rw
		flags+=("$mount")
		for ((i = 1; i < ${#ports[@]}; i += 2)); do
			[[ " $published" == *" ${ports[i]} "* ]] || published+="${ports[i]} "
		done
		flags+=("--env=TMUX_DEBUG_SANDBOX_PUBLISHED=$published")
	fi
	((EUID)) || chown -R "$user" "$sockets"
}

start_part() {
	local part=$1 i port mount words=() part_flags=() more_for_proxy
	local given=${TMUX_DEBUG_SANDBOX_PROXY_PODMAN_ARGS-}
	IFS=$' \t\n' read -r -d '' -a more_for_proxy <<<"$given" || true
	bind "$sockets/$part" /run/proxy rw
	part_flags=("$mount")
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
	ports)
		for ((i = 0; i < ${#ports[@]}; i += 2)); do
			words+=(in "${ports[i]}" "${ports[i + 1]}")
		done
		for port in "${host_ports[@]}"; do
			words+=(out "$port")
		done
		if ((${#ports[@]})); then
			bind "$sockets/inside" /run/inside ro
			part_flags+=("$mount")
		fi
		# It is on this machine's own network, and looks up no names.
		for i in "${!more_for_proxy[@]}"; do
			[[ ${more_for_proxy[i]} != --@(net|network|userns)=* ]] || unset "more_for_proxy[i]"
		done
		part_flags+=(--network=host)
		;;
	esac
	podman run --detach --rm --pull=never --cap-drop=all --security-opt=no-new-privileges \
		--read-only --http-proxy=false --pids-limit=512 --memory=512m --log-driver=k8s-file \
		"--log-opt=path=$report-$part.log" --log-opt=max-size=10mb "${as_user[@]}" \
		"--name=$name-$part" "--label=tmux-debug-sandbox=$name" \
		"${part_flags[@]}" "${more_for_proxy[@]}" \
		"$proxy_image" "${words[@]}" >/dev/null
}

wait_for_part() {
	local part=$1 tries
	for ((tries = 0; tries < 400; tries++)); do
		[[ ! -e $sockets/$part/ready ]] || return 0
		podman container exists "$name-$part" || break
		sleep 0.05
	done
	cat "$report-$part.log" >&2
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
