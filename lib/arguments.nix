# How the functions of this library look at what they are given.
#
# A check is a function of a name and a value that returns the reason against the value, or null. The
# name says which part of the argument it is, and is "" for the whole.
{ lib }:

let
  # What a function says of a value: no more of it than helps.
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

  subject = name: if name == "" then "the argument" else "`${name}`";
  part = name: child: if name == "" then child else "${name}.${child}";
  isSet = value: lib.isAttrs value && !lib.isDerivation value;

  # The first reason that there is.
  first = reasons: lib.findFirst (reason: reason != null) null reasons;

  # A check that everything passes.
  anything = _: _: null;

  /**
    A check by a predicate.

    # Type

    ```
    is :: String -> (Any -> Bool) -> String -> Any -> String | Null
    ```

    # Examples

    ```nix
    is "a string" lib.isString "audit" "a.log"
    => null
    is "a string" lib.isString "audit" /a.log
    => "`audit` is of type path (/a.log), but it should be a string."
    ```
  */
  is =
    expected: isValid: name: value:
    if isValid value then
      null
    else
      "${subject name} is ${describe value}, but it should be ${expected}.";

  /**
    A check by a predicate that null passes, too; the text says what null means.

    # Type

    ```
    isOrNull :: String -> String -> (Any -> Bool) -> String -> Any -> String | Null
    ```

    # Examples

    ```nix
    isOrNull "a string" "none" lib.isString "audit" null
    => null
    isOrNull "a string" "none" lib.isString "audit" 1
    => "`audit` is of type int (1), but it should be a string, or null for none."
    ```
  */
  isOrNull =
    expected: meaning: isValid:
    is "${expected}, or null for ${meaning}" (value: value == null || isValid value);

  /**
    A check by several, of which each is asked only where those before it have no reason.

    # Type

    ```
    allOf :: [String -> Any -> String | Null] -> String -> Any -> String | Null
    ```

    # Examples

    ```nix
    allOf [ (is "a string" lib.isString) (is "not empty" (text: text != "")) ] "name" ""
    => "`name` is of type string (\"\"), but it should be not empty."
    ```
  */
  allOf =
    checks: name: value:
    first (map (check: check name value) checks);

  /**
    A check of a list, each element by one check.

    # Type

    ```
    listOf :: (String -> Any -> String | Null) -> String -> Any -> String | Null
    ```

    # Examples

    ```nix
    listOf (is "a string" lib.isString) "podmanArgs" [ "--tty" 1 ]
    => "`podmanArgs.1` is of type int (1), but it should be a string."
    ```
  */
  listOf =
    check: name: value:
    if lib.isList value then
      first (lib.imap0 (index: check (part name (toString index))) value)
    else
      is "a list" lib.isList name value;

  /**
    A check of a set of attributes with any names, each value by one check.

    # Type

    ```
    setOf :: (String -> Any -> String | Null) -> String -> Any -> String | Null
    ```

    # Examples

    ```nix
    setOf (is "a string" lib.isString) "env" { PORT = 80; }
    => "`env.PORT` is of type int (80), but it should be a string."
    ```
  */
  setOf =
    check: name: value:
    if isSet value then
      first (lib.mapAttrsToList (child: check (part name child)) value)
    else
      is "a set" isSet name value;

  /**
    A check of a set of attributes with known names, each value by its own check.

    # Inputs

    `kind`
    : what the names are names of

    `checks`
    : the check for each name that there may be

    `required`
    : names that there must be

    `refused`
    : names that somebody may expect, each with the reason why there is no such thing

    # Type

    ```
    closedSet ::
      {
        kind :: String,
        checks :: { ${name} :: String -> Any -> String | Null },
        required :: [String],
        refused :: { ${name} :: String },
      }
      -> String -> Any -> String | Null
    ```

    # Examples

    ```nix
    closedSet { kind = "option"; checks.audit = is "a string" lib.isString; } "" { audti = "a.log"; }
    => "Unknown option: audti. Known: audit."
    ```
  */
  closedSet =
    {
      kind,
      checks,
      required ? [ ],
      refused ? { },
    }:
    name: value:
    let
      given = lib.attrNames value;
      unknown = lib.subtractLists (lib.attrNames checks) given;
      explained = lib.filter (child: refused ? ${child}) unknown;
      missing = lib.subtractLists given required;
    in
    if !isSet value then
      is "a set with an attribute for each ${kind}" isSet name value
    else if explained != [ ] then
      "`${part name (lib.head explained)}` is refused: ${refused.${lib.head explained}}"
    else if unknown != [ ] then
      "Unknown ${kind}${lib.optionalString (name != "") " in `${name}`"}: ${firstNames unknown}."
      + " Known: ${lib.concatStringsSep ", " (lib.attrNames checks)}."
    else if missing != [ ] then
      "`${part name (lib.head missing)}` is missing."
    else
      first (lib.mapAttrsToList (child: checks.${child} (part name child)) value);

  /**
    The argument of a function, where nothing speaks against it; else an error that says what does.

    # Type

    ```
    checked :: String -> (String -> Any -> String | Null) -> Any -> Any
    ```

    # Examples

    ```nix
    checked "f" (setOf (is "a string" lib.isString)) { a = "b"; }
    => { a = "b"; }
    checked "f" (setOf (is "a string" lib.isString)) { a = 1; }
    => error: f: `a` is of type int (1), but it should be a string.
    ```
  */
  checked =
    function: check: argument:
    let
      reason = check "" argument;
    in
    lib.throwIf (reason != null) "${function}: ${reason}" argument;
in
{
  inherit
    allOf
    anything
    checked
    closedSet
    is
    isOrNull
    listOf
    setOf
    ;
}
