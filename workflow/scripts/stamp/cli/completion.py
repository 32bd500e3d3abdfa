"""Print a script that lets bash or zsh complete commands, options and studies of `stamp`."""

from __future__ import annotations

import argparse

HELP = "print a script for completion in bash or zsh"
EXAMPLE = "completion bash > ~/.local/share/bash-completion/completions/stamp"

OF_STUDY = ("cost", "logs", "open")  # commands whose arguments are studies

SCRIPT = """\
# Completion of stamp for {shell}: `eval "$(stamp completion {shell})"` turns it on.
{before}_stamp() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" command="" one
    for one in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$one" in {commands}) command="$one"; break;; esac
    done
    local words=""
    case "$command" in
        "") words="{top}";;
{cases}
    esac
    local before="${{COMP_WORDS[COMP_CWORD-1]}}" study
    if [[ "$before" == --study || ( "$word" != -* && "$command" =~ ^({of_study})$ ) ]]; then
        words=""
        for study in config/studies/*.yaml; do
            study="${{study##*/}}"
            [[ "$study" == "*.yaml" ]] || words+=" ${{study%.yaml}}"
        done
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    elif [[ "$word" == -* || -z "$command" ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o default -F _stamp stamp
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=("bash", "zsh"))


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
    print(script(arguments.shell, arguments.options), end="")


def script(shell: str, options: dict[str, list[str]]) -> str:
    """The script for a shell, with the ``options`` of each command and, under "", of all."""
    commands = [name for name in options if name]
    cases = "\n".join(f'        {name}) words="{" ".join(options[name])}";;' for name in commands)
    before = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return SCRIPT.format(
        shell=shell,
        before=before,
        commands="|".join(commands),
        top=" ".join([*commands, *options[""]]),
        cases=cases,
        of_study="|".join(OF_STUDY),
    )
