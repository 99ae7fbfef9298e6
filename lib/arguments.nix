# How the functions of this library look at what they are given. A validator returns the reason
# against a value, or null.
{ lib }:

let
  describe =
    value:
    if lib.isDerivation value then
      "a derivation"
    else if lib.isAttrs value || lib.isList value || lib.isFunction value then
      "of type ${builtins.typeOf value}"
    else
      "of type ${builtins.typeOf value} (${
        if builtins.isPath value then toString value else builtins.toJSON value
      })";

  # Enough of them to see what was meant.
  firstNames =
    names:
    lib.concatStringsSep ", " (lib.take 3 names)
    + lib.optionalString (lib.length names > 3) " and ${toString (lib.length names - 3)} more";
in
{
  /**
    Why a value is not a set of attributes with known names, or null.

    # Inputs

    `function`
    : the name of the function that was given the value

    `kind`
    : what the names are names of

    `known`
    : the names that there are

    `value`
    : what was given

    # Type

    ```
    closedSetReason ::
      { function :: String, kind :: String, known :: [String] } -> Any -> String | Null
    ```

    # Examples

    ```nix
    closedSetReason { function = "f"; kind = "option"; known = [ "audit" ]; } { audit = "a.log"; }
    => null
    closedSetReason { function = "f"; kind = "option"; known = [ "audit" ]; } { audti = "a.log"; }
    => "f: Unknown option: audti. Known: audit."
    ```
  */
  closedSetReason =
    {
      function,
      kind,
      known,
    }:
    value:
    let
      unknown = lib.subtractLists known (lib.attrNames value);
    in
    if !lib.isAttrs value || lib.isDerivation value then
      "${function}: the argument is ${describe value},"
      + " but it should be a set with an attribute for each ${kind}."
    else if unknown != [ ] then
      "${function}: Unknown ${kind}: ${firstNames unknown}."
      + " Known: ${lib.concatStringsSep ", " known}."
    else
      null;

  /**
    Why a set has values that are neither strings nor null, or null.

    # Inputs

    `function`
    : the name of the function that was given the set

    `set`
    : what was given

    # Type

    ```
    stringsReason :: String -> { ... } -> String | Null
    ```

    # Examples

    ```nix
    stringsReason "f" { audit = "a.log"; dropEnv = null; }
    => null
    stringsReason "f" { audit = /a.log; }
    => "f: `audit` is of type path (/a.log), but it should be a string, or null for none."
    ```
  */
  stringsReason =
    function: set:
    let
      wrong = lib.attrNames (lib.filterAttrs (_: value: value != null && !lib.isString value) set);
      name = lib.head wrong;
    in
    if wrong == [ ] then
      null
    else
      "${function}: `${name}` is ${describe set.${name}},"
      + " but it should be a string, or null for none.";
}
