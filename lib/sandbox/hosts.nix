# Names of hosts of the internet. An address has no name that could be looked at, and needs no resolving.
{ lib }:

let
  name = "(\\*\\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\\.)+[a-z]([a-z0-9-]*[a-z0-9])?";
  matches = pattern: value: lib.isString value && builtins.match pattern value != null;
in
rec {
  # The name and the port of a host, the latter where it has one.
  pairOf =
    port: host:
    let
      parts = lib.splitString ":" host;
    in
    [ (lib.head parts) ] ++ (if lib.length parts == 2 then lib.tail parts else [ port ]);

  isHost = matches name;
  isHostWithPort =
    value:
    matches "${name}(:[1-9][0-9]*)?" value
    && builtins.fromJSON (lib.elemAt (pairOf "443" value) 1) < 65536;
}
