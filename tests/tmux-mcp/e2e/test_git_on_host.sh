#!/usr/bin/env bash
# What git on the host runs after a sandbox was at work: in the project, in a submodule, and in another worktree.
# shellcheck disable=SC2016
# shellcheck source=tests/tmux-mcp/e2e/lib.sh
source "$(dirname "$0")/lib.sh" || exit
command -v git >/dev/null || {
	echo "not tried: git is missing" >&2
	exit 77
}

export HOME=$work/home GIT_CONFIG_NOSYSTEM=1
unset XDG_CONFIG_HOME
mkdir "$HOME"
git config --global user.name somebody
git config --global user.email somebody@example.com
git config --global init.defaultBranch main
git config --global protocol.file.allow always
git config --global safe.directory '*' # root looks at what another user has

# A repository with two submodules, one of which is its own repository, another worktree, hooks of its own, and configuration in a file that it has.
git init -q "$HOME/part"
git -C "$HOME/part" commit -q --allow-empty -m first
git init -q "$ws"
git -C "$ws" submodule --quiet add "$HOME/part" lib/part
git clone -q "$HOME/part" "$ws/inner"
mkdir "$ws/.githooks" "$ws/etc"
printf '#!/bin/sh\necho good\n' >"$ws/.githooks/pre-commit"
chmod +x "$ws/.githooks/pre-commit"
echo '[alias] hello = !echo hello' >"$ws/etc/gitconfig"
git -C "$ws" add . 2>/dev/null # it warns of the repository
git -C "$ws" commit -qm first
git -C "$ws" config core.hooksPath .githooks
git -C "$ws" config include.path ../etc/gitconfig
git -C "$ws" worktree add -q "$HOME/other" -b other
own() { ((EUID)) || chown -hR "$owner:$owner" "$ws" "$HOME/other"; }
own

# What is evil leaves this file.
evil=$ws/evil
on_host() {
	git -C "$ws" status --short
	git -C "$ws" -c user.name=me commit -q --allow-empty -m more
	git -C "$ws" hello
	git -C "$ws/lib/part" status --short
	git -C "$HOME/other" status --short
} >/dev/null 2>&1

tried=0
tries() {
	tried=$((tried + 1))
	rm -f "$evil"
	in_sandbox "$ws" bash -c "$1" >"$work/output" 2>&1 || true
	lacks "$(<"$work/output")" "syntax error"
	on_host || true
	[[ ! -e $evil ]] || fail "git on the host ran what came of: $1"
}

# A directory like git's with a program in its configuration.
made='
	mkdir -p evil.git/objects evil.git/refs
	echo "ref: refs/heads/main" >evil.git/HEAD
	printf "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch '"$evil"'; false\"\n" >evil.git/config
'
program='#!/bin/sh
touch '"$evil"
tries "${made}echo '$ws/evil.git' >.git/worktrees/other/commondir"
tries "${made}rm .git/worktrees/other/commondir; cp evil.git/config .git/worktrees/other/config.worktree"
tries "${made}mv .git/worktrees/other .git/worktrees/away; cp -r evil.git .git/worktrees/other"
tries "${made}mv .git/worktrees .git/away; mkdir -p .git/worktrees/other; echo '$ws/evil.git' >.git/worktrees/other/commondir"
tries "${made}echo ../evil.git >.git/commondir"
tries "${made}rm -f .git/commondir; echo ../evil.git >.git/commondir"
tries "echo '$program' >.githooks/pre-commit"
tries "rm -r .githooks; mkdir .githooks; echo '$program' >.githooks/pre-commit; chmod +x .githooks/pre-commit"
tries "mv .githooks away; mkdir .githooks; echo '$program' >.githooks/pre-commit; chmod +x .githooks/pre-commit"
tries "printf '[core]\n\tfsmonitor = \"touch $evil; false\"\n' >>etc/gitconfig"
tries "printf '[core]\n\tfsmonitor = \"touch $evil; false\"\n' >>.git/modules/lib/part/config"
tries "${made}cp evil.git/config .git/modules/lib/part/config"
tries "${made}echo ../../../../evil.git >.git/modules/lib/part/commondir"
tries "${made}rm lib/part/.git; cp -r evil.git lib/part/.git"
tries "${made}mv lib/part lib/away; mkdir lib/part; cp -r evil.git lib/part/.git"
tries "${made}mv lib away; mkdir -p lib/part; cp -r evil.git lib/part/.git"
tries "echo '$program' >.git/modules/lib/part/hooks/post-index-change; chmod +x .git/modules/lib/part/hooks/*"
tries "printf '[core]\n\tfsmonitor = \"touch $evil; false\"\n' >>inner/.git/config"
tries "${made}mv inner/.git inner/away; cp -r evil.git inner/.git"
tries "${made}mv inner away; mkdir inner; cp -r evil.git inner/.git"
tries "${made}echo '$ws/evil.git' >inner/.git/commondir"

# A worktree in the project, and hooks that a submodule looks for in its own directory.
git -C "$ws" worktree add -q "$ws/.worktrees/w" -b w
mkdir "$ws/lib/part/hooks"
printf '#!/bin/sh\n' >"$ws/lib/part/hooks/post-index-change"
chmod +x "$ws/lib/part/hooks/post-index-change"
git -C "$ws/lib/part" config core.hooksPath hooks
own
tries "${made}rm .worktrees/w/.git; cp -r evil.git .worktrees/w/.git"
tries "echo '$program' >lib/part/hooks/post-index-change"

# What is new can't be protected. It is told before anybody is at a prompt again.
tells() {
	local path=$1 output
	shift
	output=$(in_sandbox "$ws" bash -c "$*" 2>&1)
	contains "$output" "made or changed since the sandbox started: "
	contains "${output##*started}" "$path"
}
new='mkdir -p "$n"; cp -r /workspace/evil.git "$n/.git"; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),"$n"'
mkdir "$work/aside"
cp -a "$ws" "$work/aside"
again() {
	find "$ws" -mindepth 1 -delete
	cp -a "$work/aside/ws/." "$ws"
	own
}
tells "'new/.git'" "${made}n=new; $new"
again
tells "'lib/part/new/.git'" "${made}cd lib/part; n=new; $new"
again
tells "\$'new\\377/.git'" "export LC_ALL=C.UTF-8; ${made}n=\$(printf 'new\377'); $new"
again
tells "'.git/modules/later'" "${made}mkdir -p .git/modules; cp -r evil.git .git/modules/later"
again
tells "'.git/COMMIT_EDITMSG'" "rm -f .git/COMMIT_EDITMSG; ln -s ~/.bashrc .git/COMMIT_EDITMSG"
again
tells "'.git/rebase-merge'" "mkdir .git/rebase-merge; echo exec evil >.git/rebase-merge/git-rebase-todo"
again
tells "'link/.git'" "${made}mkdir link; ln -s ../evil.git link/.git; git update-index --add --cacheinfo 160000,\$(git rev-parse HEAD),link"
again
tells "'.git/modules/linked'" "${made}mkdir -p .git/modules; mv evil.git .git/modules/linked; rm -r .git/modules/linked/objects; ln -s ../../objects .git/modules/linked/objects"
again
tells "'.git/logs/refs/heads/objects/x'" "mkdir -p .git/logs/refs/heads/objects; ln -s ~/.bashrc .git/logs/refs/heads/objects/x"
again
tells "'elsewhere/.git'" "${made}mkdir elsewhere; cp -r evil.git elsewhere/.git"
again
tells "'.git/worktrees/other/rebase-merge'" "mkdir .git/worktrees/other/rebase-merge"
again
# An index that git can't read is told, too; then nothing starts.
tells "'.git/index'" "echo junk >.git/index"
refused "git can't read '$ws/.git/index', so submodules can't be protected. Mend it: git reset" "$ws" true
again
# A FIFO in place of a configuration holds nothing up.
in_sandbox "$ws" bash -c "mkdir -p .git/modules/x/objects; mkfifo .git/modules/x/config; echo x >.git/modules/x/HEAD" 2>/dev/null
timeout 20 "$SANDBOX_BASE" "$ws" true 2>/dev/null
again
git -C "$ws" worktree remove --force "$ws/.worktrees/w"
git -C "$ws/lib/part" config --unset core.hooksPath
rm -r "$ws/lib/part/hooks"

# What one does with git works as before, and nobody sees what was made for it.
equal "$(<"$ws/.git/commondir")" "."
author=(--podman-arg=--env=GIT_{AUTHOR,COMMITTER}_NAME=somebody --podman-arg=--env=GIT_{AUTHOR,COMMITTER}_EMAIL=somebody@example.com)
git -C "$ws" checkout -q .
rm -rf "$ws"/{evil.git,away}
own
in_sandbox "${author[@]}" "$ws" bash -c '
	set -e
	[ -z "$(git status --short)" ]
	echo a >file
	git add file
	git commit -qm "one more"
	git switch -qc side HEAD~1
	echo b >other-file
	git stash -qu
	git stash pop -q
	git add .
	git commit -qm "on the side"
	git rebase -q main
	git switch -q main
	git merge -q side
	git branch -qd side
	git gc -q
	git -C lib/part status --short
	git -C lib/part fsck --strict 2>&1
	[ -z "$(git -C lib/part for-each-ref "*/commondir")" ]
	git fsck 2>&1
' >"$work/output" 2>&1 || fail "git in the sandbox: $(<"$work/output")"
equal "$(git -C "$ws" log --format=%s -2 | tr '\n' ' ')" "on the side one more "
equal "$(git -C "$ws" status --short)" ""

# What would change what is protected fails, and names it.
for command in "config user.name x" "remote add x x" "worktree prune" "worktree remove --force $HOME/other"; do
	contains "$(in_sandbox "$ws" bash -c "git $command" 2>&1 || true)" "Device or resource busy"
done
git -C "$ws" worktree list | grep -q "^$HOME/other " || fail "a worktree was removed"

# A linked worktree, a part of a repository and a bare one as projects, with hooks that are named from outside.
whole=$ws
git init -q "$HOME/main"
mkdir -p "$HOME/main/part/.githooks"
git clone -q "$HOME/part" "$HOME/main/part/inner"
printf '#!/bin/sh\n' >"$HOME/main/part/.githooks/pre-commit"
chmod +x "$HOME/main/part/.githooks/pre-commit"
git -C "$HOME/main" add . 2>/dev/null
git -C "$HOME/main" commit -qm first
git -C "$HOME/main" config core.hooksPath part/.githooks
git -C "$HOME/main" worktree add -q "$HOME/linked" -b linked
git init -q --bare "$HOME/bare"
own_all() { ((EUID)) || chown -hR "$owner:$owner" "$HOME/main" "$HOME/linked" "$HOME/bare"; }
own_all
on_host() {
	git -C "$HOME/main" status --short
	git -C "$HOME/main" commit -q --allow-empty -m more
	git -C "$HOME/linked" commit -q --allow-empty -m more
	git -C "$HOME/bare" st
} >/dev/null 2>&1
ws=$HOME/main/part
evil=$ws/evil
program="#!/bin/sh
touch $evil"
tries "echo '$program' >.githooks/pre-commit"
tries "${made//"$whole"/"$ws"}rm -r inner/.git; cp -r evil.git inner/.git"
ws=$HOME/linked
evil=$ws/evil
program="#!/bin/sh
touch $evil"
tries "echo '$program' >part/.githooks/pre-commit"
ws=$HOME/bare
evil=$ws/evil
tries "git config alias.st '!touch $evil'"

until_no_container "the last one"
echo "git on the host: $tried ways, and none ran"
