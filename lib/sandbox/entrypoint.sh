#!/bin/bash
# What a container starts with: prepares the home directory, and becomes the command.
set -euo pipefail

# The command's PATH may lead elsewhere.
path=$PATH
PATH=/bin

# With a read-only root and no volume for it, the home directory is where one can write.
if [[ ! -w $HOME ]]; then
	export HOME=/tmp/home
	mkdir -p "$HOME"
fi

# Links, so that a home directory that is kept has no files of an older image. Files of the user's stay.
shopt -s globstar dotglob
for file in /etc/skel/**; do
	target=$HOME/${file#/etc/skel/}
	if [[ -d $file ]]; then
		mkdir -p "$target"
	elif [[ $file != */.claude.json ]]; then
		[[ -e $target && ! -L $target ]] || ln -sfn "$file" "$target"
	elif [[ -s $target ]]; then
		# The client writes this one. It gets our servers, and is whole somewhere at any moment.
		if ! jq --slurp '.[0] * .[1]' "$target" "$file" >"$target.new"; then
			echo "entrypoint: $target can't be given the MCP servers. It should be what Claude Code writes, a JSON object: mend it, or move it away." >&2
			exit 1
		fi
		cmp --silent "$target.new" "$target" || cat "$target.new" >"$target"
		rm "$target.new"
	else
		cp "$file" "$target"
	fi
done

PATH=$path
exec "$@"
