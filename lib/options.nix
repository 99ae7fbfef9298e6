# How the functions of this library check their arguments: as the module system checks options.
{ lib }:

let
  describe =
    value: if lib.isDerivation value then "a derivation" else "of type ${builtins.typeOf value}";
in
rec {
  /**
    A type of values that a predicate tells, with the text that stands for it in messages.

    # Type

    ```
    typeOf :: String -> (Any -> Bool) -> OptionType
    ```

    # Examples

    ```nix
    typeOf "a whole number above 0" (value: lib.isInt value && value > 0)
    ```
  */
  typeOf =
    description: check:
    lib.mkOptionType {
      name = "checked";
      descriptionClass = "noun";
      inherit check description;
      merge = lib.mergeEqualOption;
    };

  /**
    A type of strings that match a regular expression as a whole.

    # Type

    ```
    matching :: String -> String -> OptionType
    ```

    # Examples

    ```nix
    matching "a time such as 90s" "[0-9]+[smhd]"
    ```
  */
  matching =
    description: pattern:
    typeOf description (value: lib.isString value && builtins.match pattern value != null);

  /**
    A type of sets of options, which takes no package, path or function in their place.

    # Type

    ```
    setOf :: String -> { ${option} :: Option } -> OptionType
    ```

    # Examples

    ```nix
    setOf "a set such as { name = \"me\"; }" { name = lib.mkOption { type = lib.types.str; }; }
    ```
  */
  setOf =
    description: options:
    let
      # It would take those as modules.
      set = lib.types.submodule { inherit options; };
    in
    lib.mkOptionType (
      {
        name = "set";
        descriptionClass = "noun";
        inherit description;
        check = value: lib.isAttrs value && !lib.isDerivation value;
        merge = place: definitions: set.merge place definitions;
      }
      // lib.optionalAttrs (set ? getSubOptions) {
        inherit (set) emptyValue getSubOptions;
      }
    );

  /**
    The argument of a function, as its options have it: each with its value or its default.

    # Type

    ```
    checked :: String -> { ${option} :: Option } -> { ${option} :: Any } -> { ${option} :: Any }
    ```

    # Examples

    ```nix
    checked "f" { audit = lib.mkOption { type = lib.types.str; default = "none"; }; } { }
    => { audit = "none"; }
    checked "f" { audit = lib.mkOption { type = lib.types.str; default = "none"; }; } { audit = 1; }
    => error: A definition for option `audit' is not of type `string'. Definition values:
       - In `f': 1
    ```
  */
  checked =
    function: options: argument:
    if !lib.isAttrs argument || lib.isDerivation argument then
      throw "${function}: the argument is ${describe argument}, but it should be a set of options."
    else
      (lib.evalModules {
        modules = [
          { inherit options; }
          {
            _file = function;
            config = argument;
          }
        ];
      }).config;
}
