# nixpkgs' own `lib`, from the directory nixpkgs-lib beside this file.
let
  # Nix before 2.14 has no readFileType. A source tree is itself in the store, whose directory can't be read.
  scope = {
    builtins = builtins // {
      readFileType =
        path:
        if dirOf path == /. + builtins.storeDir then
          "directory"
        else
          (builtins.readDir (dirOf path)).${baseNameOf path};
    };
    import = builtins.scopedImport scope;
  };
  load = if builtins ? readFileType then import else scope.import;
in
load ./nixpkgs-lib/lib
