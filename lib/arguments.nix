# How the functions of this library look at what they are given: a validator tells the reason against it, or null.
{ lib }:
{
  /**
    Why a value is not a set of attributes with known names, or null.

    # Inputs

    `function`: the name of the function that was given the value
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
    The value, unless there is a reason against it.

    # Type

    ```
    unlessReason :: String | Null -> a -> a
    ```

    # Examples

    ```nix
    unlessReason null 1
    => 1
    unlessReason "f: the argument is 2, but it should be 1." 1
    => error: f: the argument is 2, but it should be 1.
    ```
  */
  unlessReason = reason: value: if reason == null then value else throw reason;
}
