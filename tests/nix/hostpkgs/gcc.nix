# A compiler that links, which is what rustc needs: without headers and the part that reads C.
{
  fromHost,
  lib,
  packages,
}:
let
  target = "x86_64-linux-gnu";
  host = fromHost {
    name = "gcc-unwrapped";
    programs = map (name: "/usr/bin/${target}-${name}") [
      "as"
      "gcc-12"
      "ld.bfd"
    ];
    links = {
      as = "${target}-as";
      ld = "${target}-ld.bfd";
    };
    trees =
      map (file: "/usr/lib/./gcc/${target}/12/${file}") [
        "collect2"
        "crtbegin.o"
        "crtbeginS.o"
        "crtend.o"
        "crtendS.o"
        "libgcc.a"
        "liblto_plugin.so"
      ]
      ++ map (file: "/usr/lib/${target}/${file}") [
        "Scrt1.o"
        "crt1.o"
        "crti.o"
        "crtn.o"
        "libc_nonshared.a"
        "libdl.a"
        "libgcc_s.so.1"
        "libm.so.6"
        "libpthread.a"
        "librt.a"
        "libutil.a"
      ];
  };
in
packages.runCommand "gcc" { } ''
  mkdir -p $out/bin $out/lib
  ln -s ${host}/lib/libm.so.6 $out/lib/libm.so
  ln -s ${host}/lib/libgcc_s.so.1 $out/lib/libgcc_s.so
  echo "GROUP ( ${host}/lib/libc.so.6 ${host}/lib/libc_nonshared.a ${host}/lib/ld-linux-x86-64.so.2 )" >$out/lib/libc.so
  cat >$out/bin/gcc <<END
  #!${lib.getExe packages.bash}
  exec ${host}/bin/${target}-gcc-12 -B${host}/bin -B${host}/lib -L$out/lib -L${host}/lib \
    -Wl,-dynamic-linker=${host}/lib/ld-linux-x86-64.so.2 -Wl,-rpath=${host}/lib "\$@"
  END
  chmod +x $out/bin/gcc
  ln -s gcc $out/bin/cc
''
