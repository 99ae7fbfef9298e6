# How the functions of this library look at what they are given.
{ lib }:
{
  /**
    Why a value is not an attribute set with known names only, or null.

    # Inputs

    `function`: its name, for the message
    `kind`: what the names are names of
    `known`: the names that there are
    `value`: what was given

    # Type

    ```
    closedSetReason :: { function :: String, kind :: String, known :: [String] } -> Any -> String | Null
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
    if !lib.isAttrs value then
      "${function}: the argument is of type ${builtins.typeOf value}, but it should be a set with an attribute for each ${kind}."
    else if unknown != [ ] then
      "${function}: Unknown ${kind}: ${lib.concatStringsSep ", " unknown}. Known: ${lib.concatStringsSep ", " known}."
    else
      null;

  /**
    The value, when there is no reason against it.

    # Type

    ```
    unlessReason :: String | Null -> a -> a
    ```

    # Examples

    ```nix
    unlessReason null 1
    => 1
    unlessReason "f: the argument is 1, but it should be 2." 1
    => error: f: the argument is 1, but it should be 2.
    ```
  */
  unlessReason = reason: value: if reason == null then value else throw reason;
}
