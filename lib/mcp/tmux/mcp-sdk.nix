# packageOverrides for Python: version 2 of the MCP SDK and what it needs of its own kind, as wheels
# from PyPI.
{ lib, fetchPypi }:
final: prev:
let
  fromWheel =
    {
      pname,
      version,
      hash,
      description,
      homepage,
      license,
      # What the wheel requires: the lowest version of each package.
      requires,
      # Of these, an older version does, too.
      relaxed ? [ ],
    }:
    let
      # As wheels and modules have it.
      name = lib.replaceStrings [ "-" ] [ "_" ] pname;
    in
    final.buildPythonPackage {
      inherit pname version;
      format = "wheel";
      src = fetchPypi {
        inherit version hash;
        pname = name;
        format = "wheel";
        dist = "py3";
        python = "py3";
      };
      dependencies = map (package: final.${package}) (lib.attrNames requires);
      pythonRelaxDeps = relaxed;
      pythonImportsCheck = [ name ];
      passthru = { inherit relaxed requires; };
      meta = {
        inherit description homepage license;
        sourceProvenance = [ lib.sourceTypes.binaryBytecode ];
      };
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
    description = "Model Context Protocol SDK";
    homepage = "https://github.com/modelcontextprotocol/python-sdk";
    license = lib.licenses.mit;
    requires = {
      anyio = "4.10";
      cryptography = "0"; # of pyjwt[crypto]
      httpx2 = "2.5.0";
      jsonschema = "4.20.0";
      mcp-types = "2.2.0";
      opentelemetry-api = "1.28.0";
      pydantic = "2.12.0";
      pyjwt = "2.10.1";
      python-multipart = "0.0.9";
      sse-starlette = "3.0.0";
      starlette = "0.48.0";
      typing-extensions = "4.13.0";
      typing-inspection = "0.4.1";
      uvicorn = "0.31.1";
    };
  };
  mcp-types = fromWheel {
    pname = "mcp-types";
    version = "2.2.0";
    hash = "sha256-6kdrc+6GcJq1q8lFI4XtNswFkH5YI1ViLilFlcmgTxM=";
    description = "Types of the Model Context Protocol";
    homepage = "https://github.com/modelcontextprotocol/python-sdk";
    license = lib.licenses.mit;
    requires = {
      pydantic = "2.12.0";
      typing-extensions = "4.13.0";
    };
  };

  httpx2 = unlessNew prev.httpx2 {
    pname = "httpx2";
    version = "2.5.0";
    hash = "sha256-PS1NnPS2HxofRqlZR8/bR+gMtWovkcYlasj1jkiR30E=";
    description = "HTTP client";
    homepage = "https://github.com/pydantic/httpx2";
    license = lib.licenses.bsd3;
    requires = {
      anyio = "0";
      httpcore2 = "2.5.0";
      idna = "3.18";
      truststore = "0.10";
      typing-extensions = "4.5.0";
    };
    # A nixpkgs whose httpx2 is older has an older idna as well.
    relaxed = [ "idna" ];
  };
  httpcore2 = unlessNew prev.httpcore2 {
    pname = "httpcore2";
    version = "2.5.0";
    hash = "sha256-XONRiN5GHTHo0AC/uO+L8ixsFlh6IR5Vcd6qXpvfhCo=";
    description = "Minimal HTTP client";
    homepage = "https://github.com/pydantic/httpx2";
    license = lib.licenses.bsd3;
    requires = {
      h11 = "0.16";
      truststore = "0.10";
    };
  };
}
