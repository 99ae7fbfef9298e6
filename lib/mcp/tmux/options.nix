# The server's options, by their names in Nix, of which `allowKill` is TMUX_DEBUG_ALLOW_KILL: as options of modules, and
# the variable of each.
#
# The table is the server's own, as its entry for registries has it.
{ lib }:

let
  inherit (lib) types;
  inherit (import ../../options.nix { inherit lib; }) matching;

  entry = lib.head (lib.importJSON ../../../server.json).packages;

  toolsets = [
    "debug"
    "tabs"
    "terminal"
    "tmux"
  ];

  # Of those that are more than a string.
  typed = {
    TMUX_DEBUG_KEEP = {
      type = matching "a time such as 90s, 60m, 2h or 1d" "[1-9][0-9]{0,7}[smhd]";
      example = "60m";
    };
    TMUX_DEBUG_SECRETS = {
      type = types.enum [
        "anyone"
        "person"
      ];
      example = "person";
    };
    TMUX_DEBUG_SIZE = {
      type = matching "columns and rows, such as 120x40" "[1-9][0-9]*x[1-9][0-9]*";
      example = "100x34";
    };
    TMUX_DEBUG_TOOLSETS =
      let
        one = "(${lib.concatStringsSep "|" toolsets})";
      in
      {
        type = matching "one or more of ${lib.concatStringsSep ", " toolsets}, separated by commas" "${one}( *, *${one})*";
        example = "debug,terminal";
      };
    TMUX_DEBUG_AUDIT = {
      type = types.str;
      example = "~/debug-audit.log";
    };
    TMUX_DEBUG_DROP_ENV = {
      type = types.str;
      example = "AWS_*,GITHUB_TOKEN";
    };
  };

  capitalized = word: lib.toUpper (lib.substring 0 1 word) + lib.substring 1 (-1) word;
  nameOf =
    variable:
    let
      words = lib.splitString "_" (lib.toLower (lib.removePrefix "TMUX_DEBUG_" variable));
    in
    lib.concatStrings (lib.imap0 (index: word: if index == 0 then word else capitalized word) words);

  byName =
    f:
    lib.listToAttrs (
      map (variable: lib.nameValuePair (nameOf variable.name) (f variable)) entry.environmentVariables
    );
in
{
  # The options of the server, which are null where they are not given.
  options = byName (
    variable:
    let
      given = typed.${variable.name} or { type = if variable.format == "boolean" then types.bool else types.str; };
    in
    lib.mkOption (
      given
      // {
        type = types.nullOr given.type;
        default = null;
        description = "${variable.description}.";
      }
      // lib.optionalAttrs (variable ? default) {
        defaultText = lib.literalMD "null, which is `${variable.default}`";
      }
    )
  );

  # The variable of each.
  variables = byName (variable: variable.name);
}
