# Python of the Debian host, and packages for it made of PyPI's wheels.
{
  lib,
  host,
  mkDerivation,
}:
let
  inherit (host) wheels;

  # What a set of attributes for nixpkgs' buildPythonPackage or buildPythonApplication becomes here, or a function of what
  # becomes of it.
  build =
    python: given:
    let
      attributesOf = final: if lib.isFunction given then given final else given;
      attributes = attributesOf (attributes // { finalPackage = package; });
      package = made python attributes // {
        overridePythonAttrs =
          change: build python (final: attributesOf final // change (attributesOf final));
      };
    in
    package;
  made =
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
        "pythonRelaxDeps"
        "build-system"
        "nativeCheckInputs"
      ]
      // {
        nativeBuildInputs = [ python ] ++ attributes.build-system or [ ] ++ attributes.nativeCheckInputs or [ ];
        propagatedBuildInputs = attributes.dependencies or [ ] ++ [ python ];
      }
    );

  packagesOf =
    python: final:
    {
      buildPythonPackage = build python;
      buildPythonApplication = build python;
      pytestCheckHook = final.pytest;
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
    # The Python that packages get; here it is always the one that is made.
    self ? null,
  }:
  let
    python = host.python3 // {
      pkgs = lib.fix (lib.extends packageOverrides (packagesOf python));
    };
  in
  python
) { }
