#!/bin/bash
# What lets a closed sandbox reach a few hosts, and what leads single ports in and out:
#
#   proxy.sh [host NAME PORT | key NAME PORT VARIABLE HEADER PREFIX | in PORT INSIDE | out PORT]...
#
# A `host` is reached through the socket /run/proxy/hosts, where an HTTP proxy answers. NAME may
# begin with `*.`, PORT may be `*`. The nth `key` is reached through the socket /run/proxy/key-N,
# where plain HTTP goes on with TLS to NAME:PORT, and HEADER is PREFIX with the value of VARIABLE. A
# PORT that leads `in` goes on to the socket /run/inside/INSIDE, and one that leads `out` is reached
# through the socket /run/proxy/PORT; both are of 127.0.0.1. /run/proxy/ready says that all of them
# answer.
set -euo pipefail

fail() {
	echo "$1"
	exit 2
}

hosts=() servers="" outward=()

# The servers for names, as nginx takes them.
resolvers() {
	local word server found=""
	while read -r word server _; do
		[[ $word == nameserver ]] || continue
		[[ $server != *:* ]] || server="[${server%"%"*}]"
		found+=" $server"
	done </etc/resolv.conf
	echo "${found:-127.0.0.1}"
}

add_key() {
	local number=$1 name=$2 port=$3 variable=$4 header=$5 prefix=$6 value host=$2
	[[ $port == 443 ]] || host+=:$port
	value=${!variable-}
	unset "$variable"
	# Others would end the string of nginx, or begin a variable of it.
	[[ $value =~ ^[A-Za-z0-9._~+/=:@%-]+$ ]] ||
		fail "$variable is empty, or contains characters that no key has."
	servers+="
	server {
		listen unix:/run/proxy/key-$number;
		set \$host_outside $name;
		location / {
			proxy_pass https://\$host_outside:$port;
			proxy_set_header Host $host;
			proxy_set_header $header \"$prefix$value\";
			proxy_set_header Connection \"\";
			proxy_ssl_name $name;
		}
	}"
}

keys=0
while (($#)); do
	case $1 in
	host)
		hosts+=("$2 $3")
		shift 3
		;;
	key)
		add_key "$keys" "${@:2:5}"
		((++keys))
		shift 6
		;;
	in)
		socat -t 3600 "TCP-LISTEN:$2,bind=127.0.0.1,reuseaddr,fork" "UNIX-CONNECT:/run/inside/$3" &
		listening=$!
		until { : <>"/dev/tcp/127.0.0.1/$2"; } 2>/dev/null; do
			kill -0 "$listening" 2>/dev/null || fail "Port $2 can't be listened on."
			sleep 0.01
		done
		shift 3
		;;
	out)
		socat -t 3600 "UNIX-LISTEN:/run/proxy/$2,fork" "TCP:127.0.0.1:$2" &
		outward+=("$2")
		shift 2
		;;
	*) fail "proxy.sh: unknown word: $1" ;;
	esac
done

cd /tmp
if ((keys)); then
	cat >nginx.conf <<END
daemon off;
pid nginx.pid;
error_log stderr crit;
events {}
http {
	log_format readable 'passed \$request_method https://\$host_outside\$uri (with its key): '
		'\$request_length bytes out, \$bytes_sent bytes in';
	access_log /dev/stdout readable;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	server_tokens off;

	# What comes is passed on as it comes, however long it takes.
	client_max_body_size 0;
	proxy_buffering off;
	proxy_request_buffering off;
	proxy_http_version 1.1;
	proxy_read_timeout 1h;
	proxy_send_timeout 1h;

	resolver $(resolvers);
	proxy_ssl_server_name on;
	proxy_ssl_verify on;
	proxy_ssl_verify_depth 5;
	proxy_ssl_trusted_certificate /etc/ssl/certs/ca-certificates.crt;
	$servers
}
END
	nginx -e stderr -p /tmp -c nginx.conf &
	nginx=$!
fi

if ((${#hosts[@]})); then
	pairs=()
	for host in "${hosts[@]}"; do
		read -r name port <<<"$host"
		number=${#pairs[@]}
		pairs+=("pair$number")
		# Without -n, Squid would look up the name of an address, and whoever answers chooses it.
		if [[ $name == "*."* ]]; then
			name=${name#"*."}
			echo "acl name$number dstdom_regex -n -i ^([a-z0-9_-]+\\.)+${name//./\\.}\$"
		else
			echo "acl name$number dstdomain -n $name"
		fi
		echo "acl port$number port ${port/"*"/1-65535}"
		echo "acl pair$number all-of name$number port$number"
	done >hosts.conf
	# Squid has no sockets with paths. On a network that it shares with other proxies, it needs a
	# port of its own.
	port=$((20000 + SRANDOM % 10000))
	printf '%s\n' "acl allowed any-of ${pairs[*]}" "http_port 127.0.0.1:$port" >>hosts.conf
	squid -N -f /squid.conf &
	squid=$!
	until { : <>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; do
		kill -0 "$squid" 2>/dev/null || fail "squid does not start."
		sleep 0.05
	done
	socat -t 3600 UNIX-LISTEN:/run/proxy/hosts,fork "TCP:127.0.0.1:$port" &
	until [[ -S /run/proxy/hosts ]]; do sleep 0.01; done
fi
for port in "${outward[@]}"; do
	until [[ -S /run/proxy/$port ]]; do sleep 0.01; done
done
for ((number = 0; number < keys; number++)); do
	until [[ -S /run/proxy/key-$number ]]; do
		kill -0 "$nginx" 2>/dev/null || fail "nginx does not start."
		sleep 0.05
	done
done
: >/run/proxy/ready

# If one of them ends, so do the others.
wait -n || true
fail "A part of the proxy has ended."
