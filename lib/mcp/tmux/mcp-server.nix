# The package: the server with its own Python and tmux, which stay out of the panes' environment.
{
  lib,
  fetchPypi,
  python3,
  runCommand,
  tmux,
}:

let
  root = ../../..;
  entry = lib.importJSON (root + "/server.json");

  # Where this nixpkgs still has version 1 of the MCP SDK, this package alone gets version 2.
  python =
    if lib.versionAtLeast (python3.pkgs.mcp.version or "0") "2.2" then
      python3
    else
      python3.override (old: {
        self = python;
        packageOverrides = lib.composeExtensions (old.packageOverrides or (_: _: { })) (
          import ./mcp-sdk.nix { inherit lib fetchPypi; }
        );
      });
  pythonPackages = python.pkgs;
in
pythonPackages.buildPythonApplication (finalAttrs: {
  pname = "tmux-debug-mcp";
  inherit (entry) version;
  pyproject = true;

  src = lib.fileset.toSource {
    inherit root;
    fileset =
      lib.fileset.difference
        (lib.fileset.unions [
          (root + "/LICENSE")
          (root + "/README.md")
          (root + "/data")
          (root + "/pyproject.toml")
          (root + "/tests")
          (root + "/tmux_debug_mcp")
        ])
        (
          lib.fileset.unions [
            (root + "/tests/judges")
            (root + "/tests/nix")
            (root + "/tests/tmux-mcp/e2e")
          ]
        );
  };

  postPatch = ''
    substituteInPlace tmux_debug_mcp/options.py \
      --replace-fail '"PROGRAM", "tmux"' '"PROGRAM", "${lib.getExe tmux}"'
  '';

  build-system = [ pythonPackages.flit-core ];

  dependencies = [
    pythonPackages.anyio
    pythonPackages.google-re2
    pythonPackages.jsonschema
    pythonPackages.mcp
    pythonPackages.orjson
    # The extra `screenshot`.
    pythonPackages.pillow
  ];

  nativeCheckInputs = [
    pythonPackages.hypothesis
    pythonPackages.pytest-xdist
    pythonPackages.pytestCheckHook
  ];
  pythonImportsCheck = [ "tmux_debug_mcp" ];
  enabledTestPaths = [ "tests/unit" ];
  # Test the modules as they are installed.
  preCheck = ''
    rm -r tmux_debug_mcp
  '';

  # The stock wrapper sets PATH, where panes would find the server's Python first, and
  # PYTHONNOUSERSITE. The script knows its paths itself instead, and -I keeps a PYTHONPATH that is
  # meant for the panes away from the server.
  # Nor is it to put its Python and modules into every shell that has the package.
  dontWrapPythonPrograms = true;
  postFixup = ''
    buildPythonPath "$out"
    for script in tmux-debug tmux-debug-mcp; do
      patchPythonScript "$out/bin/$script"
      sed -i '1s/$/ -I/' "$out/bin/$script"
    done
    rm "$out/nix-support/propagated-build-inputs"
  '';

  passthru = {
    # For a registry of MCP servers: `mcpServer { inherit pkgs; }`.
    mcpServer =
      { pkgs }:
      import ./. {
        inherit pkgs;
        package = finalAttrs.finalPackage;
      };
    # A client that finds a bug with it.
    tests.demo = runCommand "tmux-debug-mcp-demo" { } ''
      HOME=$TMPDIR ${lib.getExe finalAttrs.finalPackage} demo | tee $out
      grep "with payee.lock:" $out >/dev/null
    '';
  };

  meta = {
    description = "MCP server that gives a debugging agent real terminals, over tmux";
    # The code, the fonts of screenshots, and the player of pages.
    license = [
      lib.licenses.mit
      lib.licenses.asl20
      lib.licenses.bitstreamVera
      lib.licenses.ofl
    ];
    mainProgram = "tmux-debug-mcp";
    maintainers = [ ];
    platforms = lib.platforms.linux;
  }
  # Since the first release.
  // lib.optionalAttrs (entry ? repository) {
    homepage = entry.repository.url;
    changelog = "${entry.repository.url}/blob/v${finalAttrs.version}/CHANGELOG.md";
  };
})
