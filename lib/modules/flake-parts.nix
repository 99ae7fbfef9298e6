# For flake-parts: a shell with the server, which puts the server's configuration into the project.
{ flake-parts-lib, lib, ... }:
{
  options.perSystem = flake-parts-lib.mkPerSystemOption (
    { config, pkgs, ... }:
    let
      cfg = config.programs.tmux-debug-mcp;
      server = import ./server.nix { inherit lib pkgs; };
      made = server.made cfg;

      # What Claude Code reads in a project: the text of each file, null for one that is not to be.
      files = {
        ".mcp.json" =
          if cfg.scope == "main" then
            builtins.toJSON { mcpServers.${server.name} = made.config; }
          else
            null;
        ".claude/agents/${server.name}.md" = if cfg.scope == "subagent" then made.agent else null;
      };
      suffix = "-tmux-debug-mcp-file";
      wordsOf = path: text: [
        path
        (if text == null then "" else "${pkgs.writeText (baseNameOf path + suffix) text}")
      ];

      # Only links that this program has made are replaced or removed.
      link = pkgs.writeShellApplication {
        name = "link-tmux-debug-mcp";
        runtimeInputs = [ pkgs.coreutils ];
        text = ''
          while (($#)); do
            path=$1 file=$2
            shift 2
            if [[ $(readlink "$path") == /nix/store/*${suffix} ]]; then
              rm "$path"
            fi
            if [[ -z $file ]]; then
              continue
            elif [[ -e $path || -L $path ]]; then
              echo "tmux-debug-mcp: $path already exists and was kept." \
                "What it should contain is in $file" >&2
            else
              mkdir -p "$(dirname "$path")"
              ln -s "$file" "$path"
            fi
          done
        '';
      };
      words = lib.concatLists (lib.mapAttrsToList wordsOf files);
    in
    {
      options.programs.tmux-debug-mcp = server.options // {
        devShell = lib.mkOption {
          type = lib.types.package;
          readOnly = true;
          description = ''
            A shell with the package, for the `inputsFrom` of your shell. When you enter it, it links
            the file that Claude Code reads, .mcp.json or the subagent's, into the current directory.
          '';
        };
      };

      config.programs.tmux-debug-mcp.devShell = pkgs.mkShell (
        lib.optionalAttrs cfg.enable {
          packages = [ cfg.package ];
          shellHook = "${lib.getExe link} ${lib.escapeShellArgs words}\n";
        }
      );
    }
  );
}
