# Python of the Debian host, and packages for it made of PyPI's wheels.
{
  lib,
  host,
  mkDerivation,
}:
let
  interpreter = host.fromHost {
    name = "python3";
    packages = [ "python3.11-minimal" ];
    links = {
      python = "python3.11";
      python3 = "python3.11";
    };
    # Wheels are linked with libraries that any Linux is supposed to have.
    trees = [
      "/usr/lib/python3.11"
    ]
    ++ map (library: "/usr/lib/x86_64-linux-gnu/${library}") [
      "libdl.so.2"
      "libm.so.6"
      "libpthread.so.0"
      "librt.so.1"
      "libstdc++.so.6"
      "libutil.so.1"
    ];
  };
  inherit (host) wheels;

  # What a set of attributes for nixpkgs' buildPythonPackage or buildPythonApplication becomes here.
  build =
    python: attributes:
    mkDerivation (
      {
        hooks = [ ./hooks.sh ];
        steps = ./steps.py;
        stepTools = [
          (host.fetch wheels.tools.installer)
          (host.fetch wheels.tools.packaging)
        ];
        phases = "buildPython";
      }
      // removeAttrs attributes [
        "dependencies"
        "build-system"
        "nativeCheckInputs"
      ]
      // {
        nativeBuildInputs = [ python ] ++ attributes.build-system or [ ] ++ attributes.nativeCheckInputs or [ ];
        propagatedBuildInputs = attributes.dependencies or [ ] ++ [ python ];
      }
    )
    // {
      overridePythonAttrs = change: build python (attributes // change attributes);
    };

  packagesOf =
    python: final:
    {
      buildPythonPackage = build python;
      buildPythonApplication = build python;
      pytestCheckHook = final.pytest;
      # Where a file is can't be told from its name here: it is looked up.
      fetchPypi =
        {
          pname,
          version,
          hash,
          ...
        }:
        let
          wheel = wheels.others."${lib.replaceStrings [ "_" ] [ "-" ] pname}-${version}";
        in
        host.fetch (wheel // { sha256 = hash; });
    }
    // lib.mapAttrs (
      pname: wheel:
      final.buildPythonPackage {
        inherit pname;
        inherit (wheel) version;
        src = host.fetch wheel;
        format = "wheel";
        dependencies = map (name: final.${name}) wheel.dependencies;
      }
    ) wheels.packages;
in
lib.makeOverridable (
  {
    packageOverrides ? _: _: { },
  }:
  let
    python = interpreter // {
      pkgs = lib.fix (lib.extends packageOverrides (packagesOf python));
    };
  in
  python
) { }
