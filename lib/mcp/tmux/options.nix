# The server's options, by their names in Nix, of which `allowKill` is TMUX_DEBUG_ALLOW_KILL: the
# variable of each, what it does, and whether it is a boolean; the others are strings.
#
# The table is the server's own, as its entry for registries has it.
{ lib }:

let
  entry = lib.head (lib.importJSON ../../../server.json).packages;

  capitalized = word: lib.toUpper (lib.substring 0 1 word) + lib.substring 1 (-1) word;
  nameOf =
    variable:
    let
      words = lib.splitString "_" (lib.toLower (lib.removePrefix "TMUX_DEBUG_" variable));
    in
    lib.concatStrings (lib.imap0 (index: word: if index == 0 then word else capitalized word) words);
in
lib.listToAttrs (
  map (
    variable:
    lib.nameValuePair (nameOf variable.name) {
      variable = variable.name;
      description = "${variable.description}.";
      isBoolean = variable.format == "boolean";
    }
  ) entry.environmentVariables
)
