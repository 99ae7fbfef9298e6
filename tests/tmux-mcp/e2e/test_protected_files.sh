#!/usr/bin/env bash
# What of the project can't be changed in a sandbox: a list of ways, tried through our own tools, and what the host has
# afterwards. What was made or changed besides is told.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit

own() { ((EUID)) || chown -hR 1000:1000 "$1"; }

# A repository, with all that is protected by default.
mkdir -p "$ws"/.git/hooks "$ws"/.claude/{agents,commands,hooks,other,skills/own} "$ws"/.{agents/skills,codex,cursor,gemini,goose,opencode/plugin,zed} "$ws/.vscode" "$ws/.idea" "$ws"/src/{hooks,skills/shared} "$ws/.husky"
printf '#!/bin/sh\necho good\n' >"$ws/.git/hooks/pre-commit"
echo 'echo shared' >"$ws/src/hooks/shared"
ln -s ../../src/hooks/shared "$ws/.git/hooks/post-commit"
ln -s /nix/store/none "$ws/.git/hooks/post-merge"
echo 'echo pushed' >"$ws/.husky/pre-push"
echo 'be good' | tee "$ws/.claude/agents/one.md" "$ws/.claude/commands/one.md" "$ws/.claude/skills/own/SKILL.md" >"$ws/src/skills/shared/SKILL.md"
ln -s ../../src/skills/shared "$ws/.claude/skills/shared"
printf '[core]\n\tbare = false\n' >"$ws/.git/config"
echo 'ref: refs/heads/main' >"$ws/.git/HEAD"
echo good >"$ws/.envrc"
servers=(.codex/config.toml .cursor/mcp.json .gemini/settings.json .goose/own .opencode/plugin/own.js .zed/settings.json .agents/skills/own opencode.json opencode.jsonc .devcontainer.json)
for file in "${servers[@]}"; do echo '{}' >"$ws/$file"; done
echo '{}' | tee "$ws/.mcp.json" "$ws/.claude/settings.json" "$ws/.claude/settings.local.json" >"$ws/.vscode/tasks.json"
echo '<project/>' >"$ws/.idea/workspace.xml"
own "$ws"
snapshot() { (cd "$ws" && find .git/hooks .git/config .husky src/hooks src/skills .envrc .mcp.json .claude/{settings*,agents,commands,hooks,skills} .vscode .idea "${servers[@]}" -exec stat -c '%n %i %a %s %Y' {} + -type f -exec sha256sum {} + | sort); }
before=$(snapshot)

denied=("Read-only file system" "Device or resource busy" "Invalid cross-device link" "ermission denied" "Operation not permitted" "File exists" "cannot")

try_to_change() {
	# What is still done as ever.
	gives "a file of the project" "echo made >src/made; cat src/made" made
	gives "a file beside the protected ones" "echo a >.claude/other/b; cat .claude/other/b" a
	gives "a file of git's" "echo b >.git/index; mkdir -p .git/objects/aa; cat .git/index" b
	gives "a file that is replaced as editors do" "echo new >src/new; mv src/new src/made; cat src/made" new
	gives "what is protected can be read" "cat .envrc; tail -n 1 .git/hooks/pre-commit" $'good\necho good'

	for file in .git/config .git/hooks/pre-commit .git/hooks/post-commit src/hooks/shared .husky/pre-push .claude/agents/one.md .claude/commands/one.md .claude/skills/own/SKILL.md .claude/skills/shared/SKILL.md src/skills/shared/SKILL.md .envrc .mcp.json .claude/settings.json .claude/settings.local.json .vscode/tasks.json .idea/workspace.xml "${servers[@]}"; do
		denies "a write to $file" "echo evil >$file" "${denied[@]}"
		denies "$file, removed" "rm -f $file" "${denied[@]}"
		denies "$file, replaced" "echo evil >src/evil; mv -f src/evil $file" "${denied[@]}"
	done
	for directory in .git/hooks .codex .cursor .gemini .zed .vscode .idea .husky .claude/agents .claude/commands .claude/hooks .claude/skills src/skills/shared; do
		denies "a file in $directory" "echo evil >$directory/evil" "${denied[@]}"
		denies "$directory, moved away" "mv $directory src/away" "${denied[@]}"
		denies "$directory, moved away in its place" "mv -T $directory $directory.old" "${denied[@]}"
		denies "$directory, removed" "rm -rf $directory" "${denied[@]}"
		denies "$directory, replaced by a link" "ln -sfnT /tmp $directory" "${denied[@]}"
		denies "$directory, replaced by a directory" "mkdir -p src/other; mv -fT src/other $directory" "${denied[@]}"
	done
	for above in .git .claude src/skills src; do
		denies "$above, moved away and made anew" "mv -T $above $above.old && mkdir -p $above" "${denied[@]}"
		denies "$above, moved into another directory" "rm -rf /tmp/into; mkdir /tmp/into; mv -T $above /tmp/into/moved" "${denied[@]}" "Is a directory"
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

start_server_in "$SANDBOX_BASE" "$ws" tmux-debug-mcp
try_to_change
gives "what is beside it can be changed" "mkdir -p .claude/other; echo a >.claude/other/a; echo b >.git/b; echo c >src/c; cat .claude/other/a .git/b src/c" $'a\nb\nc'
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
refuses "a hard link" "has a hard link, through which"
rm "$ws/src/hard" "$ws/.envrc"
echo >"$ws/.claude/settings"$'\n'".json"
refuses "a name of two lines" "contains a line feed, which podman can't take"
rm "$ws/.claude/settings"$'\n'".json"
ln -s src/made "$ws/.envrc"
own "$ws/.envrc"
refuses "a link" "is a link or below one, which the sandbox could replace"
rm "$ws/.envrc"
mv "$ws/.claude" "$ws/claude"
ln -s claude "$ws/.claude"
own "$ws/.claude"
refuses "a link above" "is a link or below one, which the sandbox could replace"
rm "$ws/.claude"
ln -s ../src/way "$ws/.vscode/way"
ln -s made "$ws/src/way"
own "$ws"
refuses "a link to a link" "leads through other links, which the sandbox could change"
rm "$ws/src/way" "$ws/.vscode/way"
ln -s $'../src/last\n' "$ws/.vscode/way"
refuses "a link to a name that ends with a line feed" "contains a line feed, which podman can't take"
rm "$ws/.vscode/way"
for target in .. ../.. /; do
	ln -s "$target" "$ws/.vscode/way"
	refuses "a link to $target" "leads to the whole project, which must stay writable"
	rm "$ws/.vscode/way"
done

# A file where a directory would be is protected itself.
rm -r "$ws/.git" "$ws/.idea" "$ws/.vscode"
echo "gitdir: ../main/.git/modules/ws" >"$ws/.git"
own "$ws/.git"
names=$(ls -A "$ws")
in_sandbox "$ws" bash -c 'ls -A; echo evil >.git; mv .git x' >"$work/output" 2>"$work/errors" || true
equal "$(ls -A "$ws")" "$names"
equal "$(sort "$work/output")" "$(sort <<<"$names")"
equal "$(<"$ws/.git")" "gitdir: ../main/.git/modules/ws"
contains "$(<"$work/errors")" "git will not work in the sandbox: the repository is outside the project, at '$work/main/.git/modules/ws'."
rm "$ws/.git"

# Runs a command in a sandbox at a terminal, and sets `shown` to what a person sees before the next prompt.
at_terminal() {
	shown=$(SHELL=/bin/bash script -qefc "'$SANDBOX_BASE' '$ws' bash -c '$1'; echo the next prompt" /dev/null </dev/null)
	shown=${shown%the next prompt*}
	contains "$shown" "$2"
}

# A person is told of what was made, and of what was changed though it runs on the host.
mkdir -p "$ws/.git/hooks" "$ws/.husky"
echo "{ outputs = _: { }; }" >"$ws/flake.nix"
echo "{ }" >"$ws/shell.nix"
own "$ws"
rm -r "$ws"/.{cursor,zed} "$ws"/opencode.json
at_terminal "mkdir .vscode .cursor .zed; echo x | tee .cursor/mcp.json .zed/tasks.json >opencode.json; echo x >.envrc; echo ../other >.git/commondir; echo y >>flake.nix; mkdir -p .claude; mkfifo .claude/settings.evil.json" \
	"made or changed since the sandbox started: '.claude/settings.evil.json' '.cursor' '.envrc' '.git/commondir' '.vscode' '.zed' 'flake.nix' 'opencode.json'. Check them before anything runs them."
rm -r "$ws/.vscode" "$ws/.envrc" "$ws/.git/commondir" "$ws/.claude/settings.evil.json"
# Also what makes a repository of the project itself, and what a link in a protected directory leads to.
ln -s ../../src/later "$ws/.git/hooks/post-commit"
own "$ws"
at_terminal "echo x >HEAD; echo x >src/later; rm -rf .git/objects" "made or changed since the sandbox started: 'HEAD' 'src/later'. Check them"
rm -r "$ws/HEAD" "$ws/src/later" "$ws/.git"
at_terminal "echo gitdir: .x >.git" "made or changed since the sandbox started: '.git'. Check them"
rm "$ws/.git"
mkdir -p "$ws/.git/hooks"
own "$ws"
# What has no end holds nothing up.
truncate -s 1T "$ws/.envrc"
in_sandbox "$ws" true
rm "$ws/.envrc"
at_terminal "touch src/new; rm src/new; echo done" "done"
lacks "$shown" "since the sandbox started"

# A link into the store, as modules for Nix make, is no hindrance. What comes in its place is told.
ln -sf "$(realpath "$SANDBOX_BASE")" "$ws/.mcp.json"
own "$ws"
at_terminal "ls .mcp.json" ".mcp.json"
lacks "$shown" "since the sandbox started"
at_terminal "rm .mcp.json; echo x >.mcp.json" "made or changed since the sandbox started: '.mcp.json'. Check them"
rm "$ws/.mcp.json"

# direnv runs what it is told by files that can be changed inside.
warning() { in_sandbox "$ws" true 2>&1 | grep direnv || true; }
equal "$(warning)" ""
printf '# use flake\nuse flake . --impure\n' >"$ws/.envrc"
own "$ws"
contains "$(warning)" "direnv evaluates flake.nix on this machine, and the sandbox can change it."
echo "use nix" >"$ws/.envrc"
contains "$(warning)" "direnv evaluates shell.nix on this machine"
echo "export A=B" >"$ws/.envrc"
equal "$(warning)" ""

# Protection costs nothing: no process serves the project.
equal "$(in_sandbox "$ws" bash -c 'findmnt --noheadings --output FSTYPE --target /workspace')" "$(findmnt --noheadings --output FSTYPE --target "$ws")"

echo "$tried changes tried" >&2
pass
