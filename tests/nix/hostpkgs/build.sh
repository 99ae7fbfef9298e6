# shellcheck shell=bash disable=SC2154
# The builder of every package of stdenv.nix.
set -eu
# shellcheck source=tests/nix/hostpkgs/stdenv/setup
source "$stdenv/setup"
eval "$phases"
