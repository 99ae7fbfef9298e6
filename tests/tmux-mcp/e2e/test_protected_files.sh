#!/usr/bin/env bash
# What of the project can't be changed in a sandbox: a list of ways, tried through our own tools, and what the host has
# afterwards.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

own() { ((EUID)) || chown -hR 1000:1000 "$1"; }

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

start_server_in "$SANDBOX_BASE" "$ws" tmux-debug-mcp

denied=("Read-only file system" "Device or resource busy" "Invalid cross-device link" "ermission denied" "Operation not permitted" "File exists" "cannot")

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
gives "another case is another file" "echo x >.ENVRC; cat .envrc; rm .ENVRC" good
denies "an attribute of the file" "setfattr -n user.x -v y .envrc || { echo cannot; false; }" "${denied[@]}"
denies "room in the file" "fallocate -l 100 .envrc" "${denied[@]}"

# In a namespace of one's own, where one may mount.
own="unshare --map-root-user --mount --pid --fork"
for attempt in "umount .git/hooks" "umount -l .git/hooks" "umount -l .git" "mount -o remount,rw .git/hooks" "mount -o remount,bind,rw .git/hooks" \
	"mount -o remount,bind,rw .envrc" "mount --move .git/hooks /tmp/moved" "mount --bind .git /tmp/bound" "mount --bind . /tmp/bound" \
	"mv -T .git .git.old" "rm -rf .git/hooks"; do
	denies "in a namespace: $attempt" "mkdir -p /tmp/moved /tmp/bound; $own sh -c '$attempt'" "${denied[@]}" "must be superuser" "not mounted" "wrong fs type" "Invalid argument" "bad option" "busy" "mount point"
done
denies "in a namespace, by a recursive mount" "$own sh -c 'mount --rbind . /tmp/bound && echo evil >/tmp/bound/.git/hooks/evil'" "${denied[@]}"
denies "in a namespace, by a recursive mount that is taken apart" \
	"$own sh -c 'mount --rbind . /tmp/bound && umount -l /tmp/bound/.git/hooks && echo evil >/tmp/bound/.git/hooks/evil'" "${denied[@]}" "Invalid argument" "not mounted" "must be superuser"
denies "in a namespace, by a new root" "$own sh -c 'mount --rbind / /tmp/bound && echo evil >/tmp/bound/workspace/.envrc'" "${denied[@]}"
stop_server

equal "$(snapshot)" "$before"
[[ ! -e $ws/.git.old && ! -e $ws/.claude.old ]] || fail "a directory was moved"

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

# What is not there is named, and nothing is made for it; a file where a directory would be is protected itself.
rm -r "$ws/.git" "$ws/.idea" "$ws/.vscode"
echo "gitdir: ../main/.git/worktrees/ws" >"$ws/.git"
own "$ws/.git"
names=$(ls -A "$ws")
in_sandbox "$ws" bash -c 'ls -A; echo evil >.git; mv .git x' >"$work/output" 2>"$work/errors" || true
equal "$(ls -A "$ws")" "$names"
equal "$(sort "$work/output")" "$(sort <<<"$names")"
equal "$(<"$ws/.git")" "gitdir: ../main/.git/worktrees/ws"
contains "$(<"$work/errors")" "not there, so what runs in the sandbox can make it: .claude/settings*.json .envrc .idea .vscode"

# A person is told what was made of it.
: >"$work/terminal"
SHELL=/bin/bash script -qefc "'$SANDBOX_BASE' '$ws' bash -c 'mkdir .vscode; echo x >.envrc'; sleep 60" /dev/null </dev/null >"$work/terminal" &
terminal=$!
for ((tries = 0; tries < 400; tries++)); do
	[[ $(<"$work/terminal") != *"made since"* ]] || break
	sleep 0.05
done
kill "$terminal"
contains "$(<"$work/terminal")" "made since it was started: '.envrc' '.vscode'. Look at it before something runs it."

echo "$tried changes tried" >&2
pass
