# shellcheck shell=bash disable=SC2034,SC2154
# Paths of the host that a sandbox may have changed. The launcher has `fail`, and sets before:
# `own_home`, the home directory of whoever runs it, without links.

end_others="If a sandbox runs on a directory above it, end that sandbox first."

# Whether a link is root's, and only root can write to the directories above it.
is_made_by_root() {
	local path=$1 owner mode directories=(/)
	while path=${path%/*} && [[ -n $path ]]; do directories+=("$path"); done
	while read -r owner mode; do
		((owner == 0 && (8#$mode & 8#22) == 0)) || return 1
	done < <(stat --format='%u %a' -- "${directories[@]}")
	[[ $(stat --format=%u -- "$1") == 0 ]]
}

# Sets `resolved` to the path that $1 leads to, without links. A program in a sandbox can replace a
# directory by a link, so a link is followed only where no sandbox can have made it: root's links
# and, for a mount ($2), links in the home directory itself, which is never a sandbox's project. A
# mount's link that ends in the Nix store is followed too, since nothing there is secret.
resolve() {
	local given=$1 kind=$2 rest=$1 followed=0 name link target end
	[[ $rest == /* ]] || rest=$PWD/$rest
	resolved=""
	while [[ -n $rest ]]; do
		name=${rest%%/*}
		rest=${rest#"$name"}
		rest=${rest#/}
		link=$resolved/$name
		if [[ -z $name || $name == . ]]; then
			continue
		elif [[ $name == .. ]]; then
			resolved=${resolved%/*}
			continue
		elif [[ ! -L $link ]]; then
			resolved=$link
			continue
		fi
		target=$(readlink -- "$link")
		end=$(realpath --canonicalize-missing -- "$link")
		if is_made_by_root "$link" ||
			[[ $link == /nix/store/* || ($kind == mount && $resolved == "$own_home") ]]; then
			((++followed <= 40)) ||
				fail "${given@Q} leads through too many links. Give the path it leads to."
			[[ $target != /* ]] || resolved=""
			rest=$target/$rest
		elif [[ $kind == mount && $end == /nix/store/* ]]; then
			resolved=$end
		else
			end=$(realpath --canonicalize-missing -- "$link/$rest")
			fail "${link@Q} is a link to ${target@Q}, and is not followed, since a sandbox could" \
				"have made it. If you mean ${end@Q}, give that path instead of ${given@Q}."
		fi
	done
	resolved=${resolved:-/}
	[[ $resolved != *[$'\n\r']* ]] ||
		fail "${resolved@Q} contains a line feed, which podman can't take. Rename it."
}

# Sets `identity` to the device and inode of the file or directory at $1, which contains no links,
# and `owner` and `group` to whoever has it.
identify() {
	local directory=${1%/}/ name=. place=""
	identity=""
	[[ ! -L $1 ]] ||
		fail "${1@Q} is a link, and is not followed, since a sandbox could have made it."
	if [[ ! -d $1 ]]; then
		name=${1##*/}
		directory=${1%"$name"}
	fi
	{
		IFS= read -r place
		read -r owner group identity
	} < <(cd -- "$directory" && pwd -P &&
		exec stat --format='%u %g %d:%i' -- "./$name") || true # told below
	[[ -n $identity ]] || fail "${1@Q} can't be entered."
	[[ ${place%/}/ == "$directory" ]] || fail "${1@Q} was replaced just now. $end_others"
}

# Whether the path $1, which may be missing, is the directory $2 or below it, after all links.
is_inside() { [[ $(realpath --canonicalize-missing -- "$1")/ == "${2%/}"/* ]]; }

# Prints the home directories of the user with the number $1. The system's own getent knows all
# users, but is not always there.
homes_of() {
	local number home
	while IFS=: read -r _ _ number _ _ home _; do
		[[ $number != "$1" ]] || printf '%s\n' "$home"
	done < <(
		PATH=/run/current-system/sw/bin:/usr/bin:/bin getent passwd "$1" 2>/dev/null || true
		cat /etc/passwd
	)
}
