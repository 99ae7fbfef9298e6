# The programs that the tests run.
{ pkgs }:
[
  pkgs.asciinema
  pkgs.bash
  pkgs.curl
  pkgs.dash
  pkgs.dialog
  pkgs.fish
  pkgs.htop
  pkgs.less
  pkgs.procps
  pkgs.tmux
  pkgs.util-linux
  pkgs.vim
  pkgs.zsh
  # Alone: its directory has a program for each of its names, which would come before those of the
  # build.
  (pkgs.runCommand "busybox-alone" { } ''
    mkdir -p $out/bin
    ln -s ${pkgs.busybox}/bin/busybox $out/bin/busybox
  '')
]
