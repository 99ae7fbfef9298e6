# packageOverrides for Python: version 2 of the MCP SDK and what it needs of its own kind, as wheels
# from PyPI.
{ lib }:
final: prev:
let
  fromWheel =
    {
      pname,
      version,
      hash,
      dependencies,
    }:
    let
      # As wheels and modules have it.
      name = lib.replaceStrings [ "-" ] [ "_" ] pname;
    in
    final.buildPythonPackage {
      inherit pname version dependencies;
      format = "wheel";
      src = final.fetchPypi {
        inherit version hash;
        pname = name;
        format = "wheel";
        dist = "py3";
        python = "py3";
      };
      pythonImportsCheck = [ name ];
    };

  # Each of the two pairs goes together, because its first asks for one version of its second.
  unlessNew = package: wheel: if hasHttpx2 then package else fromWheel wheel;
  hasHttpx2 = lib.versionAtLeast (prev.httpx2.version or "0") "2.5";
in
{
  mcp = fromWheel {
    pname = "mcp";
    version = "2.2.0";
    hash = "sha256-vemCWJRzoGCuFF40BumlMz/lOMlyKbqEH1p/kr4AT4E=";
    dependencies = [
      final.anyio
      final.cryptography
      final.httpx2
      final.jsonschema
      final.mcp-types
      final.opentelemetry-api
      final.pydantic
      final.pyjwt
      final.python-multipart
      final.sse-starlette
      final.starlette
      final.typing-extensions
      final.typing-inspection
      final.uvicorn
    ];
  };
  mcp-types = fromWheel {
    pname = "mcp-types";
    version = "2.2.0";
    hash = "sha256-6kdrc+6GcJq1q8lFI4XtNswFkH5YI1ViLilFlcmgTxM=";
    dependencies = [
      final.pydantic
      final.typing-extensions
    ];
  };

  httpx2 = unlessNew prev.httpx2 {
    pname = "httpx2";
    version = "2.5.0";
    hash = "sha256-PS1NnPS2HxofRqlZR8/bR+gMtWovkcYlasj1jkiR30E=";
    dependencies = [
      final.anyio
      final.httpcore2
      final.idna
      final.truststore
      final.typing-extensions
    ];
  };
  httpcore2 = unlessNew prev.httpcore2 {
    pname = "httpcore2";
    version = "2.5.0";
    hash = "sha256-XONRiN5GHTHo0AC/uO+L8ixsFlh6IR5Vcd6qXpvfhCo=";
    dependencies = [
      final.h11
      final.truststore
    ];
  };
}
