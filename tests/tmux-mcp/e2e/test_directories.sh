#!/usr/bin/env bash
# Which directories of the host a sandbox gets: the one that was named, and none to which an earlier sandbox led.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

# A directory of another user, or else another directory of the same user.
other=$work/other
mkdir -p "$other/inner"
echo "a key" | tee "$other/key" >"$other/inner/key"
chmod 600 "$other/key" "$other/inner/key"
((EUID)) || chown -R 2000:2000 "$other"
read_key=(bash -c 'cat key; true')

# What runs in a sandbox puts links in its directories' places.
in_sandbox "$ws" bash -c '
	mkdir -p sub/inner real .venv/bin
	mv sub moved
	ln -s "$0" sub
	ln -s real near
	ln -s "$0/inner/.." real/up
	ln -s "$(printf "\033[2J%s" "$0")" odd
	' "$other"

refused "'$ws/sub' is a link to '$other', and is not followed" "$ws/sub" "${read_key[@]}"
contains "$(<"$work/errors")" "If you mean '$other', give that path instead of '$ws/sub'."
for name in sub/ sub/. sub/inner sub/inner/ sub/.. sub/../other ./sub ../ws/sub real/../sub; do
	refused "'$ws/sub' is a link to '$other'" "$ws/$name" "${read_key[@]}"
	(cd "$ws" && refused "'$ws/sub' is a link to '$other'" "$name" "${read_key[@]}")
done
refused "If you mean '$other/inner', give that path" "$ws/sub/inner" "${read_key[@]}"
refused "'$ws/near' is a link to 'real'" "$ws/near/up" "${read_key[@]}"
refused "'$ws/real/up' is a link" "$ws/real/up" "${read_key[@]}"
(cd "$ws/sub" && refused "'$ws/sub' is a link" . "${read_key[@]}")
(cd "$ws/sub" && refused "'$ws/sub' is a link")
(cd "$ws/sub/inner" && refused "'$ws/sub' is a link" .. "${read_key[@]}")
# What such a link leads to is told in characters that a terminal shows.
mkdir -p "$ws/"$'\e[2J'"$other"
refused '\E[2J' "$ws/odd" true
lacks "$(<"$work/errors")" $'\e'

# A link of one's own is no other, and the path that it leads to is what to give.
ln -s "$ws" "$work/link"
refused "If you mean '$ws/real', give that path instead of '$work/link/real'." "$work/link/real" true
in_sandbox "$ws/real" touch given
in_sandbox "$ws/./moved//../real/" touch straight
[[ -e $ws/real/given && -e $ws/real/straight ]] || fail "the directory that was given is not /workspace"
equal "$(in_sandbox "$other" cat key)" "a key"
# One that only root can have made is the system's.
if [[ -L /var/lock && -w /var/lock/ ]]; then
	system=$(mktemp -d /var/lock/tmux-debug-e2e-XXXXXX)
	((EUID)) || chown "$owner" "$system"
	in_sandbox "$system" touch made || fail "a link of the system was not followed"
	[[ -e $system/made ]] || fail "another directory than the system's link led to"
	rm -r "$system"
else
	echo "not tried: a link of the system that leads to a place for all" >&2
fi

# A sandbox that still runs replaces the directory when the launcher has looked at it.
mkdir "$work/bin"
cat >"$work/bin/podman" <<'END'
#!/usr/bin/env bash
if [[ $1 == run && ! -L $REPLACED ]]; then
	mv "$REPLACED" "$REPLACED.moved"
	ln -s "$OTHER" "$REPLACED"
fi
PATH=${PATH#*:}
exec podman "$@"
END
sed -i "s|^PATH=.*|PATH=${PATH@Q}|" "$work/bin/podman"
chmod +x "$work/bin/podman"
export REPLACED=$ws/real OTHER=$other
sandbox_is_replaced() {
	PATH=$work/bin:$PATH "$1" "$ws/real" "${read_key[@]}" >"$work/output" 2>"$work/errors" || true # told by the caller
	lacks "$(<"$work/output")" key
	[[ -L $ws/real ]] || fail "nothing was replaced"
	rm "$ws/real"
	mv "$ws/real.moved" "$ws/real"
}
sandbox_is_replaced "$SANDBOX_BASE"
contains "$(<"$work/errors")" "What is mounted at /workspace was replaced just now"

# Another kernel has numbers of its own; what is compared is not left for the command.
told=$'another kernel\n0:0 /workspace'
equal "$(in_sandbox --podman-arg "--env=TMUX_DEBUG_SANDBOX_MOUNTS=$told" "$ws" bash -c 'env | grep -c SANDBOX_MOUNTS' || true)" 0

# The sources of mounts. SANDBOX_FULL has ~/settings, and ~/project/data at /data (tests/nix/e2e.nix).
export HOME=$work/home
mkdir -p "$HOME/project/data" "$HOME/dotfiles"
echo "settings of the host" >"$HOME/dotfiles/settings"
ln -s dotfiles/settings "$HOME/settings"
((EUID)) || chown -R "$owner" "$HOME"
# A sandbox never has the home directory: a link there is its user's.
equal "$("$SANDBOX_FULL" "$ws" bash -c 'cat ~/settings; touch /data/made')" "settings of the host"
[[ -e $HOME/project/data/made ]] || fail "the mount is not there"
REPLACED=$HOME/project/data
status=0
PATH=$work/bin:$PATH "$SANDBOX_FULL" "$ws" bash -c 'cat /data/key' >"$work/output" 2>"$work/errors" || status=$?
contains "$(<"$work/errors")" "What is mounted at /data was replaced just now"
equal "$status $(<"$work/output")" "2 "
status=0
"$SANDBOX_FULL" "$ws" bash -c 'cat /data/key' >"$work/output" 2>"$work/errors" || status=$?
contains "$(<"$work/errors")" "'$HOME/project/data' is a link to '$other', and is not followed"
equal "$status $(<"$work/output")" "2 "

# What ends in the Nix store, as links of a home that Nix made do, is nobody's secret.
ln -sfn "${SANDBOX_FULL%/bin/*}" "$HOME/project/data"
equal "$("$SANDBOX_FULL" "$ws" ls /data/bin)" tmux-debug-sandbox

# No program of the host is taken from the project.
printf '#!/bin/sh\necho ran >"%s/ran"\n' "$work" | tee "$ws/.venv/bin/podman" "$ws/.venv/bin/getent" >"$ws/.venv/bin/newuidmap"
chmod +x "$ws"/.venv/bin/*
(cd "$ws" && PATH=$ws/.venv/bin:.venv/bin:$PATH in_sandbox "$ws" true)
[[ ! -e $work/ran ]] || fail "a program of the project ran on the host"

# The home directory is the one that the system knows, too.
home=$(getent passwd "$EUID" | cut -d: -f6)
for directory in "$home" "$(dirname "$home")"; do
	HOME=$work/home refused "contains a whole home directory" "$directory" true
	(
		unset HOME
		refused "contains a whole home directory" "$directory" true
	)
	HOME="" refused "contains a whole home directory" "$directory" true
done
if ((EUID == 0)); then
	# Of the user who has the directory, as well.
	while IFS=: read -r _ _ number _ _ home _; do
		[[ $number != 0 && -d $home && $(stat -c %u "$home") == "$number" ]] || continue
		(
			unset HOME
			refused "contains a whole home directory" "$(realpath "$home")" true
		)
		break
	done < <(getent passwd)
	# sudo hides how its user came to the directory.
	(cd "$other" && SUDO_UID=3000 refused "'$other' belongs to the user 2000, and sudo hides the path" . "${read_key[@]}")
	equal "$(cd "$other" && SUDO_UID=2000 in_sandbox . cat key)" "a key"
	equal "$(SUDO_UID=3000 in_sandbox "$other" cat key)" "a key"
fi

pass
