#!/usr/bin/env bash
# The commands of docs/sandbox/protection.md that look at the changes run nothing of what a sandbox wrote to the project's .git.
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
git config --global protocol.file.allow always # for the submodule

git init -q "$work/library"
echo one >"$work/library/library.c"
git -C "$work/library" add .
git -C "$work/library" commit -qm first
git init -q "$HOME/project"
printf 'one\n$Id$\n' >"$HOME/project/main.c"
git -C "$HOME/project" submodule --quiet add "$work/library" part
git -C "$HOME/project" add .
git -C "$HOME/project" commit -qm first
((EUID)) || {
	chown -R "$owner" "$HOME/project"
	git config --global --add safe.directory '*' # so that only what is tested here keeps git from running things
}

# All that git runs when it shows changes leaves a file in the directory where git runs, or in the home directory.
ran=$work/ran
mkdir -m 777 "$ran"
hostile='
	for repository in . part; do
		cd "/workspace/$repository"
		directory=$(git rev-parse --absolute-git-dir)
		leaves() { printf "touch %s/%s; %s" "$0" "${repository/./top}-$1" "${2-cat}"; }
		mkdir -p "$directory/mine" "$directory/info"
		printf "#!/bin/sh\n%s\n" "$(leaves hook true)" >"$directory/mine/post-index-change"
		chmod +x "$directory/mine/post-index-change"
		git config core.fsmonitor "$(leaves fsmonitor true)"
		git config core.hooksPath "${directory/#\/workspace/"$1"}/mine"
		git config filter.mine.clean "$(leaves clean)"
		git config filter.mine.smudge "$(leaves smudge)"
		git config diff.mine.textconv "$(leaves textconv)"
		git config diff.mine.command "$(leaves command true)"
		git config diff.external "$(leaves external true)"
		git config core.pager "$(leaves pager)"
		git config pager.status "$(leaves pager)"
		git config pager.diff "$(leaves pager)"
		git config alias.st "!$(leaves alias true)"
		echo "* filter=mine diff=mine" | tee .gitattributes >"$directory/info/attributes"
		echo hidden >.gitignore
		echo hidden >hidden
		echo two >>*.c
	done
	cd /workspace
	printf "*.c ident -diff\n" >>.gitattributes
	printf "one\n\$Id: evil(); \$\n" >main.c'

# In the sandbox, it does that instead of the command.
tmux-debug-sandbox() { "${sandbox-$SANDBOX_UNPROTECTED}" "$1" bash -c "$hostile" "$ran" "$1"; }

# The blocks of the section, and what they print.
section=$(sed -n '/^## Looking at the changes/,$p' "$root/docs/sandbox/protection.md")
commands=$(sed -n '/^```console/,/^```/s/^\$ //p' <<<"$section")
equal "$(wc -l <<<"$commands")" 5
copy_and_run=$(head -n 2 <<<"$commands")
with_diff=$(sed -n 3p <<<"$commands")
status=$(sed -n 4p <<<"$commands")
diff=$(sed -n 5p <<<"$commands")

eval "$copy_and_run"
cd "$HOME/project"
# As in a terminal, where git starts its pager; and with other times, so that git reads the files.
in_terminal() {
	find . -name .git -prune -o -type f -exec touch {} +
	script --quiet --command "$1" /dev/null </dev/null | tr -d '\r'
}
what_ran() { find "$ran" -type f -printf '%f\n' | sort | paste -sd ' '; }

# What is to be feared: this, and with all that options can turn off.
in_terminal "git status" >/dev/null
contains "$(what_ran)" top-fsmonitor
contains "$(what_ran)" top-pager
rm -f "$ran"/*
in_terminal "git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.attributesFile=/dev/null --no-pager --no-optional-locks diff --no-ext-diff --no-textconv" >/dev/null
contains "$(what_ran)" clean
rm -f "$ran"/*
in_terminal "${status/--ignore-submodules=all/}" >/dev/null
contains "$(what_ran)" part-
rm -f "$ran"/*

shown=$(in_terminal "${with_diff%|*}")
contains "$shown" "> \$Id: evil(); \$"
contains "$shown" "Only in $HOME/project: hidden"
contains "$shown" "part/library.c"
equal "$(what_ran)" ""
shown=$(in_terminal "$status")
contains "$shown" .gitattributes
equal "$(what_ran)" ""
sed -i d .gitattributes
shown=$(in_terminal "$diff")
contains "$shown" 'evil();'
echo '* filter=mine diff=mine' >.gitattributes
shown=$(in_terminal "$diff")
contains "$shown" 'evil();'
equal "$(what_ran)" ""
cd "$root"

# With what is protected by default, the project's own repository runs nothing, nor does its submodule.
rm -rf "$HOME/project"
cp --archive "$HOME/project.before" "$HOME/project"
((EUID)) || chown -R "$owner" "$HOME/project"
sandbox=$SANDBOX_BASE
tmux-debug-sandbox "$HOME/project" 2>/dev/null || true # what it can't write fails
cd "$HOME/project"
in_terminal "git --no-pager status" >/dev/null
equal "$(what_ran)" ""
cd "$root"

pass
