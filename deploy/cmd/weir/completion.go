package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/deploy/profile"
)

// The scripts ask the program itself what can follow, so that they are
// never behind it.
var completions = map[string]string{ // bounded by the shells
	"bash": `_weir() {
	local IFS=$'\n'
	COMPREPLY=($(weir complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _weir weir
`,
	"zsh": `#compdef weir
_weir() {
	local -a found
	found=("${(@f)$(weir complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	found=("${(@)${(@)found//:/\\:}//$'\t'/:}")
	[[ -n "$found" ]] && _describe weir found || _files
}
compdef _weir weir
`,
	"fish": `complete -c weir -f -a '(weir complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null; or __fish_complete_path (commandline -ct))'
`,
}

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is called by kong.
func (completionCommand) Help() string {
	return `Put this where your shell starts, with weir on the PATH:

  eval "$(weir completion bash)"            ~/.bashrc
  eval "$(weir completion zsh)"             ~/.zshrc, behind compinit
  weir completion fish | source             ~/.config/fish/config.fish`
}

// Run is called by kong.
func (c *completionCommand) Run() error {
	_, err := io.WriteString(os.Stdout, completions[c.Shell])
	return err
}

// A completeCommand is what the scripts call with the words so far.
type completeCommand struct {
	Words []string `arg:"" optional:""`
}

// Run is called by kong.
func (c *completeCommand) Run(command *kong.Context) error {
	found := candidates(command.Model.Node, c.Words)
	for _, candidate := range found {
		fmt.Fprintf(os.Stdout, "%s\t%s\n", candidate[0], candidate[1])
	}
	if len(found) == 0 {
		return exitStatus(1) // the shell completes files
	}
	return nil
}

// candidates returns what the last word may be, each with its help.
func candidates(node *kong.Node, words []string) (found [][2]string) {
	var awaits *kong.Flag // its value
	last := ""
	for i, word := range words {
		name, _, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case i == len(words)-1:
			last = word
		case word == "=": // bash splits --by=key
		case awaits != nil:
			awaits = nil
		case strings.HasPrefix(word, "-"):
			if flag := flagsOf(node)[name]; flag != nil && !flag.IsBool() && !joined {
				awaits = flag
			}
		default:
			if at := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == word }); at >= 0 {
				node = node.Children[at]
			}
		}
	}
	name, _, joined := strings.Cut(strings.TrimLeft(last, "-"), "=")
	switch flag := flagsOf(node)[name]; {
	case awaits != nil:
		found, last = valuesOf(awaits.Value, ""), strings.TrimPrefix(last, "=")
	case joined && flag != nil:
		found = valuesOf(flag.Value, "--"+name+"=")
	case strings.HasPrefix(last, "-"):
		for name, flag := range flagsOf(node) {
			found = append(found, [2]string{"--" + name, flag.Help})
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				found = append(found, [2]string{child.Name, child.Help})
			}
		}
		for _, positional := range node.Positional {
			found = append(found, valuesOf(positional, "")...)
		}
	}
	found = slices.DeleteFunc(found, func(c [2]string) bool { return !strings.HasPrefix(c[0], last) })
	slices.SortFunc(found, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return found
}

// flagsOf returns what a command takes, and its default command.
func flagsOf(node *kong.Node) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{} // bounded by the model
	groups := node.AllFlags(true)
	if node.DefaultCmd != nil {
		groups = append(groups, node.DefaultCmd.Flags)
	}
	for _, flag := range slices.Concat(groups...) {
		if !flag.Hidden {
			flags[flag.Name] = flag
		}
	}
	return flags
}

// valuesOf returns the values of an enumeration, or the names of profiles.
func valuesOf(value *kong.Value, prefix string) (found [][2]string) {
	names := value.EnumSlice()
	if value.Tag.Get("complete") == "profile" {
		all, _ := profile.Read() // without profiles there is nothing to complete
		names = slices.Collect(maps.Keys(all.ByName))
	}
	for _, name := range names {
		if name != "" {
			found = append(found, [2]string{prefix + name, ""})
		}
	}
	return found
}
