#!/usr/bin/env bash
# git in linked worktrees: what works there, what a sandbox can't change or reach, and which repositories are not mounted.
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
git config --global safe.directory '*' # root looks at what another user has

own() { ((EUID)) || chown -hR "$owner:$owner" "$HOME"; }
author=(--podman-arg=--env=GIT_{AUTHOR,COMMITTER}_NAME=somebody --podman-arg=--env=GIT_{AUTHOR,COMMITTER}_EMAIL=somebody@example.com)
in_worktree() { "$SANDBOX_WORKTREE" "${author[@]}" "$@"; }

# Two worktrees, each with a remote in it, which git in a sandbox reaches.
main=$HOME/main
git init -q "$main"
echo first >"$main/file"
git -C "$main" add .
git -C "$main" commit -qm first
git -C "$main" branch packed
git -C "$main" pack-refs --all
git -C "$main" branch side
for name in one two; do
	git -C "$main" worktree add -q "$HOME/$name" -b "$name"
	git init -q --bare "$HOME/$name/remote.git"
	git -C "$main" remote add "$name" "$HOME/$name/remote.git"
	echo remote.git >>"$main/.git/info/exclude"
done
echo secret >"$main/untracked"
own

# Without the option, git does not work, and a line says so.
status=0
in_sandbox "$HOME/one" git status >"$work/output" 2>"$work/errors" || status=$?
equal "$status $(<"$work/output")" "128 "
contains "$(<"$work/errors")" "git will not work in the sandbox: this is a worktree of '$main/.git'. With \`worktree = true\` it works, and all branches can be read."

# With it, what one does with git works, in both at once.
work_with_git='
	set -e
	name=$1
	echo "$name" >"$name"
	git add "$name"
	git commit -qm "add $name"
	echo more >>"$name"
	git commit -qam "more of $name"
	git tag "tag-$name"
	git switch -qc "side-$name" HEAD~1
	echo side >"side-$name"
	git add .
	git commit -qm "side of $name"
	git rebase -q "$name"
	git switch -q "$name"
	git merge -q --no-edit "side-$name"
	git update-ref -d "refs/heads/side-$name"
	git push -q "$name" "$name"
	git fetch -q "$name"
	git status --short
	git log -1 --format="%s, $(git rev-parse --abbrev-ref HEAD)"'
both=()
for name in one two; do
	in_worktree "$HOME/$name" bash -c "$work_with_git" - "$name" >"$work/$name" 2>"$work/$name.errors" &
	both+=("$!")
done
wait "${both[@]}" || fail "$(cat "$work"/*.errors)"
equal "$(cat "$work/one" "$work/two")" $'side of one, one\nside of two, two'
# All worktrees have one stash.
equal "$(in_worktree "$HOME/one" bash -c 'echo new >>file; git stash -q; git stash pop -q; git status --short; git checkout -q file; git stash list')" " M file"
own
for name in one two; do
	equal "$(git -C "$HOME/$name" status --short)" ""
	equal "$(git -C "$HOME/$name" rev-parse "$name")" "$(git -C "$HOME/$name/remote.git" rev-parse "$name")"
done
git -C "$main" fsck --no-progress --no-dangling || fail "the repository is broken"

# What is not the worktree's own stays as it is.
snapshot() { (cd "$main" && find . -path ./.git/objects -prune -o -path ./.git/refs -prune -o -path ./.git/logs -prune -o -path ./.git/worktrees/one -prune -o -type f -exec sha256sum {} + | sort); }
before=$(snapshot)
start_server_in "$SANDBOX_WORKTREE" "${author[@]}" "$HOME/one" tmux-debug-mcp
repository=$main/.git
own_part=$repository/worktrees/one
denied=("Read-only file system" "Device or resource busy" "ermission denied" "Operation not permitted" "cannot" "could not" "unable to" "failed")
for file in config hooks/pre-commit HEAD packed-refs description info/attributes objects/info/alternates \
	worktrees/two/HEAD worktrees/two/index worktrees/new/gitdir worktrees/one/commondir worktrees/one/gitdir; do
	denies "a write to $file" "mkdir -p $(dirname "$repository/$file"); echo evil >>$repository/$file" "${denied[@]}"
done
for directory in objects/info worktrees worktrees/two; do
	denies "$directory, moved away" "mv -T $repository/$directory $repository/moved" "${denied[@]}"
done
for at in /workspace "$HOME/one"; do
	denies "a write to the link to the repository at $at" "echo 'gitdir: /tmp' >$at/.git" "${denied[@]}"
	denies "the link to the repository, removed at $at" "rm -f $at/.git" "${denied[@]}"
done
denies "a setting" "git config core.fsmonitor evil" "${denied[@]}"
denies "a setting of the worktree" "git config --worktree core.fsmonitor evil" "${denied[@]}"
denies "a branch, deleted" "git branch -D side" "${denied[@]}"
denies "a branch in packed-refs, deleted" "git branch -D packed" "${denied[@]}"
denies "all references, packed" "git pack-refs --all" "${denied[@]}"
denies "a history that is cut off" "git fetch --depth=1 file://$HOME/one/remote.git one" "${denied[@]}"
denies "garbage, collected" "git gc --quiet" "${denied[@]}"
denies "another worktree's files" "cat $HOME/two/file" "No such file"
denies "the main worktree's files" "cat $main/untracked" "No such file"
denies "the home directory's files" "cat $HOME/.gitconfig" "No such file"
gives "a worktree that is there, after a look for others" "git worktree prune >/dev/null 2>&1; git status --short" ""
# What is made or replaced beside that is in memory.
for file in config config.worktree commondir HEAD packed-refs hooks info objects/info modules; do
	run "mkdir evil; mv -Tf $repository/$file /tmp/moved; cp -r evil $repository/$file; echo evil >$repository/$file; rm -rf evil $repository/$file"
done
stop_server
equal "$(snapshot)" "$before"

# What the host does meanwhile is seen, also where it packs references.
start_server_in "$SANDBOX_WORKTREE" "${author[@]}" "$HOME/one" tmux-debug-mcp
git -C "$main" branch meanwhile
git -C "$main" gc --quiet
own
gives "what the host has made and packed" "git rev-parse one meanwhile packed | wc -l; git status --short" 3
gives "a commit after that" "echo later >later; git add later; git commit -qm later; git --no-pager log --format=%s -2" $'later\nside of one'
stop_server
own
equal "$(git -C "$main" log --format=%s -2 one)" $'later\nside of one'
equal "$(git -C "$main" for-each-ref --format='%(refname:short)' refs/heads | paste -sd ' ')" "main meanwhile one packed side two"
git -C "$main" fsck --no-progress --no-dangling || fail "the repository is broken"
git -C "$HOME/two" status --short >/dev/null || fail "the other worktree is broken"

# A relative link leads to the repository from the worktree's own place alone.
git -C "$main" worktree add -q "$HOME/relative" -b relative
echo "gitdir: ../main/.git/worktrees/relative" >"$HOME/relative/.git"
echo "../../../../relative/.git" >"$repository/worktrees/relative/gitdir"
own
equal "$(in_worktree "$HOME/relative" bash -c 'pwd; git status --short --branch; ls /workspace')" "$HOME/relative"$'\n## relative\nfile'

# A repository that does not say that this is its worktree is not mounted, whatever `.git` says: a sandbox can have written it.
other=$HOME/other
refuses() {
	local status=0
	"$SANDBOX_WORKTREE" "$other" git log >"$work/output" 2>"$work/errors" || status=$?
	contains "$(<"$work/errors")" "$1"
	equal "$status $(<"$work/output")" "2 "
}
mkdir "$other"
leads_to() {
	echo "gitdir: $1" >"$other/.git"
	own
}
leads_to "$repository/worktrees/one"
refuses "'$own_part' is not for this project, but for $HOME/one/.git. If you moved it: git worktree repair"
leads_to "$repository/worktrees/none"
refuses "'$repository/worktrees/none/gitdir' is missing. If you moved the repository: git worktree repair"
ln -s "$main" "$HOME/link"
leads_to "$HOME/link/.git/worktrees/one"
refuses "is a link to '$main', and is not followed"
# One that an earlier sandbox has made in its own project leads to no other place.
mkdir -p "$HOME/made/worktrees/evil" "$HOME/made/objects/info" "$HOME/made/refs"
touch "$HOME/made/config"
echo "$other/.git" >"$HOME/made/worktrees/evil/gitdir"
echo "$HOME" >"$HOME/made/worktrees/evil/commondir"
leads_to "$HOME/made/worktrees/evil"
refuses "'$HOME/made/worktrees/evil' belongs to a repository other than '$HOME/made'."
# Nor what an earlier sandbox has put in the place of a file there, and that doesn't end.
other=$HOME/two
two=$repository/worktrees/two
mv "$two/gitdir" "$two/gitdir.moved"
mkfifo "$two/gitdir"
own
refuses "where '$two/gitdir' is missing"
mv -f "$two/gitdir.moved" "$two/gitdir"
rm "$two/config.worktree"
ln -s "$HOME/.gitconfig" "$two/config.worktree"
own
refuses "'$two/config.worktree' is a link, and is not followed, since a sandbox could have made it."
rm "$two/config.worktree"
mv "$repository/logs" "$repository/logs.moved"
refuses "'$repository' has no logs, without which stashes would be lost. Create the directory: mkdir '$repository'/logs"
mv "$repository/logs.moved" "$repository/logs"
other=$HOME/other
# Nor one that has other things in it.
mkdir -p "$HOME/worktrees/evil" "$HOME/objects/info" "$HOME/refs"
touch "$HOME/config"
echo "$other/.git" >"$HOME/worktrees/evil/gitdir"
echo ../.. >"$HOME/worktrees/evil/commondir"
leads_to "$HOME/worktrees/evil"
refuses "The repository '$HOME' contains '$HOME', which would be mounted, too."
rm -r "$HOME/worktrees" "$HOME/objects" "$HOME/refs" "$HOME/config"
if ((!EUID)); then
	git -C "$main" worktree add -q "$HOME/foreign" -b foreign
	own
	chown 4000 "$repository/worktrees/foreign/gitdir"
	other=$HOME/foreign
	refuses "'$repository/worktrees/foreign/gitdir' belongs to another user, so this repository is not mounted."
fi
# What git would read on the host is there, so that it is mounted.
git -C "$main" config extensions.worktreeConfig true
own
in_worktree "$HOME/two" true
equal "$(stat -c %U:%s "$repository/worktrees/two/config.worktree")" "$(stat -c %U "$HOME/two"):0"
equal "$(in_worktree "$HOME/two" bash -c "git status --short; echo evil 2>&1 >>$repository/worktrees/two/config.worktree" 2>&1 | grep -c 'Read-only file system')" 1

echo "$tried changes tried" >&2
pass
