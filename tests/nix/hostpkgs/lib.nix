# What tmux-debug-mcp uses of nixpkgs' `lib`, with the meanings that it has there.
let
  inherit (builtins)
    attrNames
    attrValues
    concatStringsSep
    elem
    filter
    functionArgs
    intersectAttrs
    isFunction
    isString
    length
    listToAttrs
    map
    mapAttrs
    replaceStrings
    split
    stringLength
    substring
    ;

  letters = text: filter (letter: isString letter && letter != "") (split "" text);
  lower = letters "abcdefghijklmnopqrstuvwxyz";
  upper = letters "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

  lib = {
    inherit (builtins)
      all
      any
      attrNames
      attrValues
      concatLists
      concatMap
      concatStringsSep
      deepSeq
      elem
      elemAt
      tail
      filter
      catAttrs
      foldl'
      head
      isAttrs
      isBool
      isFloat
      isFunction
      isInt
      isList
      isString
      length
      listToAttrs
      mapAttrs
      lessThan
      replaceStrings
      seq
      sort
      ;

    # Fixed points.
    fix =
      f:
      let
        result = f result;
      in
      result;
    extends =
      overlay: f: final:
      let
        prev = f final;
      in
      prev // overlay final prev;
    composeExtensions =
      first: second: final: prev:
      let
        changed = first final prev;
      in
      changed // second final (prev // changed);

    # Functions of packages.
    makeOverridable =
      f: args:
      f args
      // {
        override = new: lib.makeOverridable f (args // (if isFunction new then new args else new));
      };
    callPackageWith =
      packages: file: args:
      let
        f = if isFunction file then file else import file;
      in
      lib.makeOverridable f (intersectAttrs (functionArgs f) packages // args);

    # Options.
    inherit (import ./modules.nix lib)
      evalModules
      literalExpression
      literalMD
      mergeEqualOption
      mkOption
      mkOptionType
      types
      ;

    # Attribute sets and lists.
    importJSON = file: builtins.fromJSON (builtins.readFile file);
    genAttrs =
      names: f:
      listToAttrs (
        map (name: {
          inherit name;
          value = f name;
        }) names
      );
    filterAttrs =
      keep: set:
      removeAttrs set (filter (name: !keep name set.${name}) (attrNames set));
    mapAttrs' = f: set: listToAttrs (attrValues (mapAttrs f set));
    nameValuePair = name: value: { inherit name value; };
    mapAttrsToList = f: set: attrValues (mapAttrs f set);
    optional = condition: value: if condition then [ value ] else [ ];
    optionals = condition: list: if condition then list else [ ];
    optionalAttrs = condition: set: if condition then set else { };
    findFirst =
      isMeant: default: list:
      if list == [ ] then
        default
      else if isMeant (builtins.head list) then
        builtins.head list
      else
        lib.findFirst isMeant default (builtins.tail list);
    count = isMeant: list: length (filter isMeant list);
    last = list: builtins.elemAt list (length list - 1);
    unique = lib.foldl' (known: value: if elem value known then known else known ++ [ value ]) [ ];
    intersectLists = one: filter (element: elem element one);
    imap1 = f: list: builtins.genList (index: f (index + 1) (builtins.elemAt list index)) (length list);
    imap0 = f: list: builtins.genList (index: f index (builtins.elemAt list index)) (length list);
    take = count: list: builtins.genList (builtins.elemAt list) (if count < length list then count else length list);
    subtractLists = removed: filter (value: !elem value removed);
    isDerivation = value: value.type or null == "derivation";

    # Strings.
    optionalString = condition: text: if condition then text else "";
    inherit (builtins) substring;
    toUpper = replaceStrings lower upper;
    toLower = replaceStrings upper lower;
    concatStrings = concatStringsSep "";
    concatMapStringsSep = separator: f: list: concatStringsSep separator (map f list);
    hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
    removeSuffix =
      suffix: text:
      let
        rest = stringLength text - stringLength suffix;
      in
      if rest >= 0 && substring rest (stringLength suffix) text == suffix then substring 0 rest text else text;
    removePrefix =
      prefix: text:
      if lib.hasPrefix prefix text then
        substring (stringLength prefix) (stringLength text) text
      else
        text;
    escapeRegex =
      let
        special = letters "\\[{()^$?*+|.";
      in
      replaceStrings special (map (character: "\\${character}") special);
    splitString =
      separator: text: filter isString (split (lib.escapeRegex separator) text);
    escapeShellArg =
      value:
      let
        text = toString value;
      in
      if builtins.match "[a-zA-Z0-9,._+:@%/-]+" text != null then
        text
      else
        "'${replaceStrings [ "'" ] [ "'\\''" ] text}'";
    escapeShellArgs = lib.concatMapStringsSep " " lib.escapeShellArg;
    versionOlder = version: other: builtins.compareVersions version other < 0;
    versionAtLeast = version: least: builtins.compareVersions version least >= 0;
    getExe = package: "${package}/bin/${package.meta.mainProgram or package.pname}";

    throwIf = condition: message: value: if condition then throw message else value;

    # Packages.
    makeLibraryPath = lib.concatMapStringsSep ":" (package: "${package}/lib");
    # Without an effect: of two files with a name, hostpkgs' buildEnv takes the first.
    setPrio = _: package: package;

    # What packages say of themselves.
    sourceTypes.binaryBytecode.isSource = false;
    licenses.bsd3.spdxId = "BSD-3-Clause";
    licenses.mit.spdxId = "MIT";
    licenses.asl20.spdxId = "Apache-2.0";
    licenses.bitstreamVera.spdxId = "Bitstream-Vera";
    licenses.ofl.spdxId = "OFL-1.1";
    platforms.linux = [
      "x86_64-linux"
      "aarch64-linux"
    ];

    # Sets of files: here, what tells of a path whether the file belongs to the set.
    fileset = {
      unions = sets: path: builtins.any (set: lib.fileset.holds set path) sets;
      difference = positive: negative: path: lib.fileset.holds positive path && !lib.fileset.holds negative path;
      holds =
        set: path:
        if isFunction set then set path else path == toString set || lib.hasPrefix "${toString set}/" path;
      toSource =
        { root, fileset }:
        let
          anyFile =
            directory:
            lib.concatMap (
              name:
              let
                path = "${directory}/${name}";
              in
              if (builtins.readDir directory).${name} == "directory" then
                anyFile path
              else
                lib.optional (lib.fileset.holds fileset path) path
            ) (attrNames (builtins.readDir directory));
        in
        {
          outPath = builtins.path {
            name = "source";
            path = root;
            filter = path: type: if type == "directory" then anyFile path != [ ] else lib.fileset.holds fileset path;
          };
        };
    };

    # The names of the tests whose `expr` is not what was `expected`, with both.
    runTests =
      tests:
      lib.concatMap (
        name:
        let
          test = tests.${name};
        in
        lib.optional (lib.hasPrefix "test" name && test.expr != test.expected) {
          inherit name;
          inherit (test) expected;
          result = test.expr;
        }
      ) (attrNames tests);
  };
in
lib
