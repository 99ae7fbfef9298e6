#!/usr/bin/env bash
# What of the project can't be changed or made in a sandbox: a list of ways, tried through our own tools, and what the host
# has afterwards.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

own() { ((EUID)) || chown -hR 1000:1000 "$1"; }

# Without FUSE, what is not there can be made (docs/sandbox.md).
has_fuse=yes
: 2>/dev/null <>/dev/fuse || has_fuse=""

# A repository, with all that is protected by default.
mkdir -p "$ws"/.git/hooks "$ws/.claude/commands" "$ws/.vscode" "$ws/.idea" "$ws/src" "$ws/.husky"
printf '#!/bin/sh\necho good\n' >"$ws/.git/hooks/pre-commit"
echo 'echo shared' >"$ws/.husky/shared"
ln -s ../../.husky/shared "$ws/.git/hooks/post-commit"
ln -s /nix/store/none "$ws/.git/hooks/post-merge"
echo 'ref: refs/heads/main' >"$ws/.git/HEAD"
echo good >"$ws/.envrc"
echo '{}' | tee "$ws/.mcp.json" "$ws/.claude/settings.json" "$ws/.claude/settings.local.json" >"$ws/.vscode/tasks.json"
echo '<project/>' >"$ws/.idea/workspace.xml"
own "$ws"
snapshot() { (cd "$ws" && find .git/hooks .husky/shared .envrc .mcp.json .claude/settings* .vscode .idea -exec stat -c '%n %i %a %s %Y' {} + -type f -exec sha256sum {} + | sort); }
before=$(snapshot)

denied=("Read-only file system" "Device or resource busy" "Invalid cross-device link" "ermission denied" "Operation not permitted" "File exists" "cannot")

try_to_change() {
	# What is still done as ever.
	gives "a file of the project" "echo made >src/made; cat src/made" made
	gives "a file beside the protected ones" "echo a >.claude/commands/a.md; cat .claude/commands/a.md" a
	gives "a file of git's" "echo b >.git/index; mkdir -p .git/objects/aa; cat .git/index" b
	gives "a file that is replaced as editors do" "echo new >src/new; mv src/new src/made; cat src/made" new
	gives "what is protected can be read" "cat .envrc; tail -n 1 .git/hooks/pre-commit" $'good\necho good'

	for file in .git/hooks/pre-commit .git/hooks/post-commit .husky/shared .envrc .mcp.json .claude/settings.json .claude/settings.local.json .vscode/tasks.json .idea/workspace.xml; do
		denies "a write to $file" "echo evil >$file" "${denied[@]}"
		denies "$file, removed" "rm -f $file" "${denied[@]}"
		denies "$file, replaced" "echo evil >src/evil; mv -f src/evil $file" "${denied[@]}"
	done
	for directory in .git/hooks .vscode .idea; do
		denies "a file in $directory" "echo evil >$directory/evil" "${denied[@]}"
		denies "$directory, moved away" "mv $directory src/away" "${denied[@]}"
		denies "$directory, moved away in its place" "mv -T $directory $directory.old" "${denied[@]}"
		denies "$directory, removed" "rm -rf $directory" "${denied[@]}"
		denies "$directory, replaced by a link" "ln -sfnT /tmp $directory" "${denied[@]}"
		denies "$directory, replaced by a directory" "mkdir -p src/other; mv -fT src/other $directory" "${denied[@]}"
	done
	for above in .git .claude .husky; do
		denies "$above, moved away and made anew" "mv -T $above $above.old && mkdir -p $above" "${denied[@]}"
		denies "$above, moved into another directory" "mv $above src/" "${denied[@]}"
		denies "$above, removed" "rm -rf $above/hooks $above/settings.json $above/shared; rmdir $above" "${denied[@]}" "not empty"
	done

	denies "a hard link to what is protected" "ln .envrc src/hard && echo evil >src/hard" "${denied[@]}"
	denies "a hard link in its place" "echo evil >src/evil; ln -f src/evil .envrc" "${denied[@]}"
	denies "a link in its place" "ln -sf src/evil .envrc" "${denied[@]}"
	denies "another mode" "chmod 777 .git/hooks/pre-commit" "${denied[@]}"
	denies "another time" "touch .git/hooks/pre-commit" "${denied[@]}"
	denies "another owner" "chown 1000:1000 .envrc" "${denied[@]}"
	denies "another length" "truncate -s 0 .mcp.json" "${denied[@]}"
	denies "a write by an open directory" "exec 4<.git; echo evil >/proc/self/fd/4/hooks/evil" "${denied[@]}"
	denies "a write by the first process's root" "echo evil >/proc/1/root/workspace/.envrc" "${denied[@]}"
	denies "a write by a link to it" "ln -sf ../.envrc src/link; echo evil >src/link" "${denied[@]}"
	denies "a write by a path around" "echo evil >src/../.git/./hooks/../../.envrc" "${denied[@]}"
	run "echo x >.ENVRC; cat .envrc; rm -f .ENVRC"
	contains "$TEXT" good
	tried=$((tried + 1))
	denies "an attribute of the file" "setfattr -n user.x -v y .envrc || { echo cannot; false; }" "${denied[@]}"
	denies "room in the file" "fallocate -l 100 .envrc" "${denied[@]}"

	# In a namespace of one's own, where one may mount: what could make the write that follows possible.
	own="unshare --map-root-user --mount --pid --fork"
	while read -r attempt; do
		denies "in a namespace: $attempt" "mkdir -p /tmp/moved /tmp/bound; $own sh -c '$attempt'" "${denied[@]}" "must be superuser" "not mounted" "wrong fs type" "Invalid argument" "bad option" "busy" "mount point"
	done <<'END'
umount .git/hooks && echo evil >.git/hooks/evil
umount -l .git/hooks && echo evil >.git/hooks/evil
umount -l .git && echo evil >.git/hooks/evil
umount -l /workspace && cd /workspace && echo evil >.git/hooks/evil
mount -o remount,rw .git/hooks && echo evil >.git/hooks/evil
mount -o remount,rw /workspace && echo evil >.git/hooks/evil
mount -o remount,bind,rw .git/hooks && echo evil >.git/hooks/evil
mount -o remount,bind,rw .envrc && echo evil >.envrc
mount --move .git/hooks /tmp/moved && echo evil >/tmp/moved/evil
mount --bind .git /tmp/bound && echo evil >/tmp/bound/hooks/evil
mount --bind .git/hooks /tmp/bound && echo evil >/tmp/bound/evil
mount --bind . /tmp/bound && echo evil >/tmp/bound/.envrc
mount --rbind . /tmp/bound && echo evil >/tmp/bound/.git/hooks/evil
mount --rbind . /tmp/bound && umount -l /tmp/bound/.git/hooks && echo evil >/tmp/bound/.git/hooks/evil
mount --rbind / /tmp/bound && echo evil >/tmp/bound/workspace/.envrc
mv -T .git .git.old
rm -rf .git/hooks
END
}

# What is there can't be changed, neither where it is mounted nor where the project is served without it.
for sandbox in "$SANDBOX_MOUNTED" "$SANDBOX_BASE"; do
	start_server_in "$sandbox" "$ws" tmux-debug-mcp
	try_to_change
	stop_server
	equal "$(snapshot)" "$before"
	[[ ! -e $ws/.git.old && ! -e $ws/.claude.old ]] || fail "a directory was moved"
done

# What can't be protected is refused, and not only half protected.
refuses() {
	local what=$1 expected=$2
	refused "$expected" "$ws" true
	echo "$what is refused" >&2
}
ln "$ws/.envrc" "$ws/src/hard"
refuses "a hard link" "has another name, a hard link"
rm "$ws/src/hard" "$ws/.envrc"
echo >"$ws/.claude/settings"$'\n'".json"
refuses "a name of two lines" "has a line feed in it, which podman can't take"
rm "$ws/.claude/settings"$'\n'".json"
ln -s src/made "$ws/.envrc"
own "$ws/.envrc"
refuses "a link" "is or is below a link, which the sandbox could replace"
rm "$ws/.envrc"
mv "$ws/.claude" "$ws/claude"
ln -s claude "$ws/.claude"
own "$ws/.claude"
refuses "a link above" "is or is below a link, which the sandbox could replace"
rm "$ws/.claude"
ln -s ../src/way "$ws/.vscode/way"
ln -s made "$ws/src/way"
own "$ws"
refuses "a link to a link" "leads through other links, or to a directory, which the sandbox could change"
rm "$ws/src/way"
mkdir "$ws/src/way"
refuses "a link to a directory" "leads through other links, or to a directory, which the sandbox could change"
rm -r "$ws/src/way" "$ws/.vscode/way"

# A file where a directory would be is protected itself.
rm -r "$ws/.git" "$ws/.idea" "$ws/.vscode"
echo "gitdir: ../main/.git/worktrees/ws" >"$ws/.git"
own "$ws/.git"
names=$(ls -A "$ws")
for sandbox in "$SANDBOX_MOUNTED" "$SANDBOX_BASE"; do
	"$sandbox" "$ws" bash -c 'ls -A; echo evil >.git; mv .git x' >"$work/output" 2>"$work/errors" || true
	equal "$(ls -A "$ws")" "$names"
	equal "$(sort "$work/output")" "$(sort <<<"$names")"
	equal "$(<"$ws/.git")" "gitdir: ../main/.git/worktrees/ws"
	[[ $sandbox != "$SANDBOX_BASE" ]] || break
	contains "$(<"$work/errors")" "not there, so what runs in the sandbox can make it: .claude/settings*.json .envrc .idea .vscode"
done

# A person is told what was made of it.
: >"$work/terminal"
SHELL=/bin/bash script -qefc "'$SANDBOX_MOUNTED' '$ws' bash -c 'mkdir .vscode; echo x >.envrc'; sleep 60" /dev/null </dev/null >"$work/terminal" &
terminal=$!
for ((tries = 0; tries < 400; tries++)); do
	[[ $(<"$work/terminal") != *"made since"* ]] || break
	sleep 0.05
done
kill "$terminal"
contains "$(<"$work/terminal")" "made since it was started: '.envrc' '.vscode'. Look at it before something runs it."

if [[ -z $has_fuse ]]; then
	echo "SKIPPED: what is not there, since /dev/fuse can not be opened here; $tried changes tried" >&2
	exit 77
fi

# What is not there can't be made, and nothing is made for it.
rm -rf "$ws"
mkdir "$ws" "$ws/src"
own "$ws"
start_server_in "$SANDBOX_BASE" "$ws" tmux-debug-mcp
gives "what is not there is not there" "ls -A; cat .envrc 2>/dev/null; true" src

not_made=("Read-only file system" "Device or resource busy")
try_to_make() {
	local file directory
	for file in .envrc .mcp.json .claude/settings.json .claude/settings.local.json .claude/settings.other.json .CLAUDE/Settings.json; do
		run "mkdir -p $(dirname "$file"); rm -rf src/*; echo evil >src/evil"
		denies "$file, written" "echo evil >$file" "${not_made[@]}"
		denies "$file, touched" "touch $file" "${not_made[@]}"
		denies "$file, moved there" "mv src/evil $file" "${not_made[@]}"
		denies "$file, copied there" "cp src/evil $file" "${not_made[@]}"
		denies "$file as a hard link" "ln src/evil $file" "${not_made[@]}"
		denies "$file as a link" "ln -s src/evil $file" "${not_made[@]}"
		denies "$file as a directory" "mkdir $file" "${not_made[@]}"
		denies "$file as a fifo" "mkfifo $file" "${not_made[@]}"
	done
	for directory in .vscode .idea .git/hooks .Vscode .GIT/HOOKS; do
		run "mkdir -p $(dirname "$directory") src/new; echo evil >src/new/evil"
		denies "$directory, made" "mkdir $directory" "${not_made[@]}"
		denies "$directory, moved there" "mv -T src/new $directory" "${not_made[@]}"
		denies "$directory as a link" "ln -sT src $directory" "${not_made[@]}"
		denies "$directory as a file" "echo evil >$directory" "${not_made[@]}"
		denies "$directory by a path around" "mkdir src/../$directory" "${not_made[@]}"
		denies "$directory in a namespace" "unshare --map-root-user --mount sh -c 'mkdir -p /tmp/bound; mount --bind . /tmp/bound && mkdir /tmp/bound/$directory'" "${not_made[@]}"
	done
	for directory in .git .claude; do
		run "rm -rf $directory src/whole; mkdir -p src/whole/hooks; echo evil >src/whole/settings.json"
		denies "$directory, moved there with what is in it" "mv -T src/whole $directory" "${not_made[@]}"
		denies "$directory as a link" "ln -sT src/whole $directory" "${not_made[@]}"
		denies "$directory as a file" "echo 'gitdir: src/whole' >$directory" "${not_made[@]}"
		denies "$directory, made and taken for another" "mkdir $directory && mv -T src/whole $directory" "${not_made[@]}"
		denies "$directory, moved away" "mkdir -p $directory && mv -T $directory src/away" "${not_made[@]}"
		run "rmdir $directory"
	done
}
try_to_make
run "rm -rf src/* .CLAUDE .GIT"
gives "what may be above it" "mkdir -p .claude/commands .git/objects; echo a >.claude/commands/a; cat .claude/commands/a" a
denies "a hook beside git's own" "mkdir .git/hooks" "${not_made[@]}"
gives "a directory above, removed" "rm -r .git .claude; ls -A" src
gives "a repository without hooks" "git init --quiet && echo a >src/a && git status --short" "?? src/"

# What the host makes meanwhile is seen at once, and is protected, too.
for word in one two three; do
	echo "$word" >"$ws/src/new"
	own "$ws/src/new"
	mv "$ws/src/new" "$ws/src/file"
	gives "a file that the host replaced" "cat src/file" "$word"
	echo "more of $word" >"$ws/src/file"
	gives "a file that the host wrote" "cat src/file" "more of $word"
done
echo good >"$ws/.envrc"
mkdir "$ws/.vscode"
own "$ws"
denies "what the host made" "echo evil >.envrc" "${denied[@]}"
denies "a file in what the host made" "echo evil >.vscode/tasks.json" "${denied[@]}"
denies "what the host made, removed" "rm -f .envrc" "${denied[@]}"
gives "what the host made can be read" "cat .envrc" good
mv "$ws/.git" "$ws/src/repository"
echo "gitdir: src/repository" >"$ws/.git"
own "$ws"
denies "a file that the host put where a directory was" "echo evil >.git" "${not_made[@]}"
denies "a file that the host put where a directory was, removed" "rm -f .git" "${not_made[@]}"
rm "$ws/.git"
mv "$ws/src/repository" "$ws/.git"
# Others on this machine see no more of the project than before.
equal "$(stat -c %a "$runtime"/tmux-debug-sandbox.*)" 700
stop_server
equal "$(<"$ws/.envrc")" good
equal "$(ls -A "$ws/.vscode")" ""

# The rest is as on any file system.
cp "$(dirname "$0")/served.py" "$ws/src"
own "$ws"
"$SANDBOX_PYTHON" "$ws" python3 src/served.py
# Also with fewer descriptors than files, where only root could have more.
((!EUID)) || [[ $TMUX_DEBUG_SANDBOX_PODMAN_ARGS == *nofile* ]] || (ulimit -n 512 && "$SANDBOX_PYTHON" "$ws" python3 src/served.py)
rm "$ws/src/served.py"
equal "$(cd "$ws" && echo .[!.]* * src/*)" ".envrc .git .vscode src src/a src/file"

# git makes no hooks of its own where it couldn't.
template_directory() { "$SANDBOX_BASE" "$ws" bash -c 'echo "${GIT_TEMPLATE_DIR-git has its own}"'; }
equal "$(template_directory)" ""
mkdir "$ws/.git/hooks"
own "$ws/.git/hooks"
equal "$(template_directory)" "git has its own"
rm -d "$ws/.git/hooks"

# Without FUSE, a start says what can be made. Only root can hide the device.
if ((!EUID)); then
	rm "$ws/.envrc"
	unshare --mount bash -c 'mount --bind /dev/null /dev/fuse && exec "$@"' - "$SANDBOX_BASE" "$ws" ls -A >"$work/output" 2>"$work/errors"
	contains "$(<"$work/errors")" "not there, so what runs in the sandbox can make it: .claude/settings*.json .envrc"
	contains "$(<"$work/errors")" "fuse: "
	equal "$(sort "$work/output")" $'.git\n.vscode\nsrc'
fi

# However a sandbox ends, what was mounted for it does.
until_nothing_is_left
in_podman=(podman unshare)
((EUID)) || in_podman=()
mounts() { "${in_podman[@]}" grep -c "$runtime/tmux-debug-sandbox.* fuse.protectfs " /proc/self/mounts || true; }
equal "$(mounts)" 0
"$SANDBOX_BASE" "$ws" bash -c 'touch started; sleep 300' &
launcher=$!
disown
for ((tries = 0; tries < 400; tries++)); do
	[[ ! -e $ws/started ]] || break
	sleep 0.05
done
equal "$(mounts)" 1
kill -KILL "$launcher"
until_nothing_is_left
equal "$(mounts)" 0

echo "$tried changes tried" >&2
pass
