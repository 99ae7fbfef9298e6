complete -c tmux-debug -f
complete -c tmux-debug -n __fish_use_subcommand -a 'create send capture run wait kill list resize restart dev attach secret ps start stop audit replay doctor config demo call completion'
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l name
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l cwd
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l env
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l size
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l wait-for
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l port
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l show
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l timeout
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l quiet
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l status
complete -c tmux-debug -n '__fish_seen_subcommand_from create' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l literal
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l paste
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l secret
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l size
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l wait-for
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l stop-pattern
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l show
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l timeout
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l quiet
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l status
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from send' -a '(tmux-debug ps --names 2>/dev/null)'
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l lines
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l since
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l pattern
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l context
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l view
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l at
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l quiet
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l status
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from capture' -a '(tmux-debug ps --names 2>/dev/null)'
complete -c tmux-debug -n '__fish_seen_subcommand_from run' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from run' -l pane
complete -c tmux-debug -n '__fish_seen_subcommand_from run' -l cwd
complete -c tmux-debug -n '__fish_seen_subcommand_from run' -l show
complete -c tmux-debug -n '__fish_seen_subcommand_from run' -l timeout
complete -c tmux-debug -n '__fish_seen_subcommand_from run' -l quiet
complete -c tmux-debug -n '__fish_seen_subcommand_from run' -l status
complete -c tmux-debug -n '__fish_seen_subcommand_from run' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l pattern
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l stop-pattern
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l gone
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l idle
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l port
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l since
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l show
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l timeout
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l follow
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l every
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l quiet
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l status
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from wait' -a '(tmux-debug ps --names 2>/dev/null)'
complete -c tmux-debug -n '__fish_seen_subcommand_from kill' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from kill' -l quiet
complete -c tmux-debug -n '__fish_seen_subcommand_from kill' -l status
complete -c tmux-debug -n '__fish_seen_subcommand_from kill' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from kill' -a '(tmux-debug ps --names 2>/dev/null)'
complete -c tmux-debug -n '__fish_seen_subcommand_from list' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from list' -l all
complete -c tmux-debug -n '__fish_seen_subcommand_from list' -l quiet
complete -c tmux-debug -n '__fish_seen_subcommand_from list' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from resize' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from resize' -l quiet
complete -c tmux-debug -n '__fish_seen_subcommand_from resize' -l status
complete -c tmux-debug -n '__fish_seen_subcommand_from resize' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from resize' -a '(tmux-debug ps --names 2>/dev/null)'
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -l command
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -l wait-for
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -l port
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -l show
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -l timeout
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -l quiet
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -l status
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from restart' -a '(tmux-debug ps --names 2>/dev/null)'
complete -c tmux-debug -n '__fish_seen_subcommand_from dev' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from dev' -l name
complete -c tmux-debug -n '__fish_seen_subcommand_from dev' -l port
complete -c tmux-debug -n '__fish_seen_subcommand_from dev' -l restart
complete -c tmux-debug -n '__fish_seen_subcommand_from attach' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from attach' -l write
complete -c tmux-debug -n '__fish_seen_subcommand_from attach' -a '(tmux-debug ps --names 2>/dev/null)'
complete -c tmux-debug -n '__fish_seen_subcommand_from secret' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from secret' -a '(tmux-debug ps --names 2>/dev/null)'
complete -c tmux-debug -n '__fish_seen_subcommand_from ps' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from ps' -l all
complete -c tmux-debug -n '__fish_seen_subcommand_from ps' -l follow
complete -c tmux-debug -n '__fish_seen_subcommand_from ps' -l names
complete -c tmux-debug -n '__fish_seen_subcommand_from start' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from start' -l keep
complete -c tmux-debug -n '__fish_seen_subcommand_from start' -l export
complete -c tmux-debug -n '__fish_seen_subcommand_from stop' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l pane
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l tool
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l caller
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l failed
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l since
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l follow
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l html
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l captures
complete -c tmux-debug -n '__fish_seen_subcommand_from audit' -l log-dir
complete -c tmux-debug -n '__fish_seen_subcommand_from replay' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from replay' -l at
complete -c tmux-debug -n '__fish_seen_subcommand_from replay' -l png
complete -c tmux-debug -n '__fish_seen_subcommand_from replay' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from replay' -l cast
complete -c tmux-debug -n '__fish_seen_subcommand_from replay' -l log-dir
complete -c tmux-debug -n '__fish_seen_subcommand_from replay' -a '(tmux-debug ps --names 2>/dev/null)'
complete -c tmux-debug -n '__fish_seen_subcommand_from doctor' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from doctor' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from doctor' -l tmux
complete -c tmux-debug -n '__fish_seen_subcommand_from doctor' -l timeout
complete -c tmux-debug -n '__fish_seen_subcommand_from config' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from config' -l scope
complete -c tmux-debug -n '__fish_seen_subcommand_from config' -l name
complete -c tmux-debug -n '__fish_seen_subcommand_from config' -l command
complete -c tmux-debug -n '__fish_seen_subcommand_from config' -l write
complete -c tmux-debug -n '__fish_seen_subcommand_from config' -l remove
complete -c tmux-debug -n '__fish_seen_subcommand_from config' -a 'claude-code codex gemini opencode vscode cursor zed goose nix'
complete -c tmux-debug -n '__fish_seen_subcommand_from demo' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from call' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from call' -l json
complete -c tmux-debug -n '__fish_seen_subcommand_from completion' -l help
complete -c tmux-debug -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
