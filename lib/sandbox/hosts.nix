# Names of hosts of the internet, and ports. An address is no such name: it would bypass the checks
# of names, and of what they resolve to.
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

  # The two ports of "18080:8080"; null for another string.
  portsOf =
    text:
    let
      found = builtins.match "([1-9][0-9]{0,4}):([1-9][0-9]{0,4})" text;
    in
    if found == null then null else map builtins.fromJSON found;

  isHost = matches name;
  isHostWithPort =
    value:
    matches "${name}(:[1-9][0-9]*)?" value
    && builtins.fromJSON (lib.elemAt (pairOf "443" value) 1) < 65536;
}
