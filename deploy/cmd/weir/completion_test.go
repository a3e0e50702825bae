package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/deploy/profile"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/programs"
)

func model(t *testing.T) *kong.Node {
	t.Helper()
	parser, err := kong.New(&commands{}, kong.Name("weir"))
	testenv.Must(t, err)
	return parser.Model.Node
}

// Every command is a candidate where it can stand, with each of its flags;
// hidden ones are not.
func TestCandidatesAreComplete(t *testing.T) {
	root, commands, flags := model(t), 0, 0
	var walk func(node *kong.Node, path []string)
	walk = func(node *kong.Node, path []string) {
		offered, hidden := offers(root, append(path, "--")...), offers(root, append(path, "")...)
		for _, flag := range node.Flags {
			if flags++; slices.Contains(offered, "--"+flag.Name) == flag.Hidden {
				t.Errorf("%v offers %v", path, offered)
			}
		}
		for _, child := range node.Children {
			if commands++; slices.Contains(hidden, child.Name) == child.Hidden {
				t.Errorf("%v offers %v", path, hidden)
			}
			walk(child, append(slices.Clone(path), child.Name))
		}
	}
	walk(root, nil)
	if commands < 25 || flags < 150 {
		t.Errorf("only %d commands and %d flags were looked at", commands, flags)
	}
}

func offers(root *kong.Node, words ...string) (names []string) {
	for _, candidate := range candidates(root, words) {
		names = append(names, candidate[0])
	}
	return names
}

// What follows depends on the words before it.
func TestCandidates(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	testenv.Must(t, profile.Change(func(all *profile.Profiles) error {
		all.ByName["prod"] = profile.Profile{}
		return nil
	}))
	root := model(t)
	for words, want := range map[string]string{
		"profile ":                   "add list remove use",
		"profile use ":               "prod",
		"err":                        "errors",
		"errors --sta":               "--status",
		"logs --profile ":            "prod",
		"logs --profile prod --ca":   "--ca-file",
		"logs --profile=":            "--profile=prod",
		"usage --bucket m":           "month",
		"usage --bucket = m":         "month",
		"usage --json --bucket=":     "--bucket=day --bucket=hour --bucket=month",
		"--log-level debug parked s": "show",
		"completion ":                "bash fish zsh",
		"logs --since ":              "",
		"logs timeout ":              "",
		"nonsense --unknown x":       "",
		"":                           strings.Join(offers(root, ""), " "),
	} {
		if got := strings.Join(offers(root, strings.Split(words, " ")...), " "); got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

// The scripts are ones of their shells, where these are installed, and
// bash completes with its own.
func TestCompletionScripts(t *testing.T) {
	dir := t.TempDir()
	for shell, script := range completions {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("there is no %s here", shell)
			continue
		}
		file := filepath.Join(dir, shell)
		testenv.Must(t, os.WriteFile(file, []byte(script), 0o600))
		if out, err := exec.CommandContext(t.Context(), path, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		return
	}
	const ask = ` && COMP_WORDS=(weir profile re) COMP_CWORD=2 && _weir && echo "${COMPREPLY[@]}" && COMP_WORDS=(weir us) COMP_CWORD=1 && _weir && echo "${COMPREPLY[@]}"`
	command := exec.CommandContext(t.Context(), bash, "-c", completions["bash"]+"true"+ask)
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(programs.Build(t, "deploy/cmd/weir"))+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil || string(out) != "remove\nusage\n" {
		t.Errorf("got %q, %v", out, err)
	}
}
