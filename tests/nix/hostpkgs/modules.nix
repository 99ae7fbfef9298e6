# What tmux-debug-mcp uses of nixpkgs' module system, with its messages: options with types, in sets and in submodules. A
# module has `options`, or `config` and `_file`; there is no priority, no condition and no function.
lib:
let
  inherit (builtins) attrNames concatMap isAttrs mapAttrs;

  isOption = value: value._type or null == "option";
  showOption = builtins.concatStringsSep ".";
  showValue =
    value:
    if builtins.isPath value then
      toString value
    else if isAttrs value || builtins.isList value || builtins.isFunction value then
      "a ${builtins.typeOf value}"
    else
      builtins.toJSON value;
  showDefs = lib.concatMapStringsSep "" (def: "\n- In `${def.file}': ${showValue def.value}");
  parenthesised = type: if type.nests or false then "(${type.description})" else type.description;

  # The values of options at a place, of definitions with file and value.
  evaluate =
    prefix: options: defs:
    let
      unknown = concatMap (
        def:
        map (name: {
          inherit name;
          def = def // { value = def.value.${name}; };
        }) (lib.filter (name: !(options ? ${name})) (attrNames def.value))
      ) defs;
      inherit (lib.head unknown) def name;
      at =
        name: option:
        let
          place = prefix ++ [ name ];
          given = concatMap (def: lib.optional (def.value ? ${name}) (def // { value = def.value.${name}; })) defs;
          bad = lib.filter (def: !option.type.check def.value) given;
          value =
            if given == [ ] then
              option.default or (throw "The option `${showOption place}' was accessed but has no value defined. Try setting the option.")
            else if bad != [ ] then
              throw "A definition for option `${showOption place}' is not of type `${option.type.description}'. Definition values:${showDefs bad}"
            else
              option.type.merge place given;
        in
        if isOption option then (option.apply or (value: value)) value else evaluate place option given;
    in
    if unknown != [ ] then
      throw "The option `${showOption (prefix ++ [ name ])}' does not exist. Definition values:${showDefs [ def ]}"
    else
      mapAttrs at options;

  elements = place: def: index: value: {
    inherit value;
    inherit (def) file;
    place = place ++ [ ''"[definition 1-entry ${toString (index + 1)}]"'' ];
  };
  checkedBy =
    type: element:
    if type.check element.value then
      type.merge element.place [ element ]
    else
      throw "A definition for option `${showOption element.place}' is not of type `${type.description}'. Definition values:${showDefs [ element ]}";

  simple = description: check: lib.mkOptionType { inherit check description; merge = lib.mergeEqualOption; };
in
{
  mkOption = attributes: attributes // { _type = "option"; };
  mkOptionType = attributes: attributes // { _type = "option-type"; };
  mergeEqualOption = _: defs: (lib.head defs).value;
  literalExpression = text: { inherit text; };
  literalMD = text: { inherit text; };

  evalModules =
    { modules }:
    {
      config = evaluate [ ] (lib.foldl' (options: module: options // module.options or { }) { } modules) (
        map (module: {
          file = module._file;
          value = module.config;
        }) (lib.filter (module: module ? config) modules)
      );
    };

  types = {
    str = simple "string" lib.isString;
    bool = simple "boolean" lib.isBool;
    raw = simple "raw value" (_: true);
    package = simple "package" lib.isDerivation;
    enum = values: simple "one of ${lib.concatMapStringsSep ", " builtins.toJSON values}" (value: lib.elem value values);
    nullOr = type: {
      description = "null or ${parenthesised type}";
      nests = true;
      check = value: value == null || type.check value;
      merge = place: defs: if (lib.head defs).value == null then null else type.merge place defs;
    };
    listOf = type: {
      description = "list of ${parenthesised type}";
      nests = true;
      check = lib.isList;
      merge = place: concatMap (def: lib.imap0 (index: value: checkedBy type (elements place def index value)) def.value);
    };
    attrsOf = type: {
      description = "attribute set of ${parenthesised type}";
      nests = true;
      check = value: isAttrs value && !lib.isDerivation value;
      merge =
        place: defs:
        mapAttrs (
          name: value:
          checkedBy type {
            inherit value;
            inherit (lib.head defs) file;
            place = place ++ [ name ];
          }
        ) (lib.head defs).value;
    };
    submodule = module: {
      description = "submodule";
      check = value: isAttrs value && !lib.isDerivation value;
      merge = place: evaluate place module.options;
    };
  };
}
