package process

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

// version is set by the linker in images; elsewhere the commit replaces it.
var version string

// unversioned is the version of a program compiled outside of a repository.
const unversioned = "unversioned"

// Version is the command version of every program.
type Version struct{}

// Run is called by kong.
func (Version) Run() error {
	return writeVersion(os.Stdout, version, buildSettings())
}

func writeVersion(w io.Writer, version string, settings map[string]string) error {
	_, err := fmt.Fprintf(w, "%s (%s, %s/%s)\n", named(version, settings), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// named returns the version, or else the commit, with a mark
// for uncommitted changes.
func named(version string, settings map[string]string) string {
	commit := settings["vcs.revision"]
	if commit != "" && settings["vcs.modified"] == "true" {
		commit += "-dirty"
	}
	return cmp.Or(version, commit, unversioned)
}

// buildSettings returns what the compiler stored in this program.
func buildSettings() map[string]string {
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	return settings
}

// Built returns this program's version, or else its commit.
func Built() string { return named(version, buildSettings()) }
