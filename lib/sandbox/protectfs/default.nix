# Serves a directory in which protected names can't be made or changed.
{ pkgs }:

pkgs.runCommandCC "protectfs"
  {
    nativeBuildInputs = [ pkgs.pkg-config ];
    buildInputs = [ pkgs.fuse3 ];
    meta.mainProgram = "protectfs";
  }
  ''
    mkdir -p $out/bin
    $CC -std=c11 -O2 -Wall -Wextra -Wshadow -Wconversion -Werror -o $out/bin/protectfs ${./protectfs.c} \
      $(pkg-config --cflags --libs fuse3)
  ''
