# The programs that the tests run.
{ pkgs }:
[
  pkgs.bash
  pkgs.dash
  pkgs.fish
  pkgs.tmux
  pkgs.util-linux
  pkgs.zsh
  # Alone: its directory has a program for each of its names, which would come before those of the
  # build.
  (pkgs.runCommand "busybox-alone" { } ''
    mkdir -p $out/bin
    ln -s ${pkgs.busybox}/bin/busybox $out/bin/busybox
  '')
]
