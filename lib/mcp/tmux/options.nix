# The server's options, by their names in Nix: as options of modules, and the variable of each, such
# as TMUX_DEBUG_ALLOW_KILL of `allowKill`.
#
# The table is the server's own, as its entry for registries has it.
{ lib }:

let
  inherit (lib) types;
  inherit (import ../../options.nix { inherit lib; }) matching typeOf;

  entry = lib.head (lib.importJSON ../../../server.json).packages;

  toolsets = [
    "debug"
    "tabs"
    "terminal"
    "tmux"
  ];

  # The whole numbers that the groups of a regular expression match; null if it does not match.
  numbersIn =
    pattern: value:
    let
      found = if lib.isString value then builtins.match pattern value else null;
    in
    if found == null then null else map builtins.fromJSON found;
  isBetween = low: high: number: low <= number && number <= high;

  secondsOf = {
    "" = 1;
    s = 1;
    m = 60;
    h = 3600;
    d = 86400;
  };
  isTime =
    value:
    let
      isWritten =
        lib.isString value
        && builtins.match "([0-9]{1,9}([.][0-9]{1,9})?|[.][0-9]{1,9})[smhd]?" value != null;
      # A number of JSON has a digit before its point, and no zeros before other digits.
      parts = builtins.match "0*([0-9]*)([.][0-9]+)?([smhd]?)" value;
      whole = lib.head parts;
      fraction = lib.elemAt parts 1;
      number = builtins.fromJSON (
        (if whole == "" then "0" else whole) + (if fraction == null then "" else fraction)
      );
      seconds = number * secondsOf.${lib.elemAt parts 2};
    in
    isWritten && 0 < seconds && seconds <= 30 * secondsOf.d;
  isSize =
    value:
    let
      numbers = numbersIn "([1-9][0-9]{0,3})x([1-9][0-9]{0,3})" value;
    in
    numbers != null && isBetween 2 500 (lib.head numbers) && isBetween 2 200 (lib.elemAt numbers 1);

  # Words as a shell's, each with a name and `=` at its beginning.
  blanks = "[ \t\r\n]";
  escaped = "\\\\(.|\n)";
  part = "'[^']*'|\"([^\"\\]|${escaped})*\"|${escaped}|[^ \t\r\n'\"\\]";
  assignment = "[^= \t\r\n'\"\\]+=(${part})*";
  assignments = "${blanks}*(${assignment}(${blanks}+${assignment})*${blanks}*)?";

  # Those of which the server refuses some strings.
  typed = {
    TMUX_DEBUG_KEEP = {
      type = typeOf "a time such as 90s, 60m, 2h or 1d, of at most 30d" isTime;
      example = "60m";
    };
    TMUX_DEBUG_ENV = {
      type = matching "NAME=VALUE words, quoted as in a shell" assignments;
      example = "PORT=8080 GREETING='good day'";
    };
    TMUX_DEBUG_SOCKET = {
      type = matching "default, or a path with a /" "|default|.*/.*";
      example = "default";
    };
    TMUX_DEBUG_SECRETS = {
      type = types.enum [
        "anyone"
        "person"
      ];
      example = "person";
    };
    TMUX_DEBUG_SIZE = {
      type = typeOf "columns and rows, such as 120x40, of at most 500x200" isSize;
      example = "100x34";
    };
    TMUX_DEBUG_TOOLSETS =
      let
        one = "(${lib.concatStringsSep "|" toolsets})";
        list = matching "" "${one}( *, *${one})*";
        # They have tools of the same names.
        hasBoth = value: lib.all (name: builtins.match ".*${name}.*" value != null) [
          "debug"
          "tmux"
        ];
      in
      {
        type = typeOf (
          "one or more of ${lib.concatStringsSep ", " toolsets}, separated by commas,"
          + " but not debug with tmux"
        ) (value: list.check value && !hasBoth value);
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
    lib.head words + lib.concatStrings (map capitalized (lib.tail words));

  byName =
    f:
    lib.listToAttrs (
      map (
        variable: lib.nameValuePair (nameOf variable.name) (f variable)
      ) entry.environmentVariables
    );
in
{
  # The options of the server, which are null where they are not given.
  options = byName (
    variable:
    let
      given =
        typed.${variable.name} or {
          type = if variable.format == "boolean" then types.bool else types.str;
        };
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
