complete -c nvpm -n "__fish_nvpm_using_subcommand run" -f -a "(__fish_complete_subcommand --fcs-skip=2)"
complete -c nvpm -n "__fish_nvpm_using_subcommand help" -f -a "{commands}"
complete -c nvpm -n "__fish_nvpm_using_subcommand completion" -f -a "bash fish zsh"
