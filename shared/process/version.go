package process

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

// version is set by the linker where images are made; elsewhere
// the commit stands for it.
var version string

// unversioned is a program that was compiled outside of a repository.
const unversioned = "unversioned"

// Version is the command that every program has.
type Version struct{}

// Run is called by kong.
func (Version) Run() error {
	return writeVersion(os.Stdout, version, buildSettings())
}

func writeVersion(w io.Writer, version string, settings map[string]string) error {
	_, err := fmt.Fprintf(w, "%s (%s, %s/%s)\n", named(version, settings), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// named is the version, or else the commit; changes that are not committed show.
func named(version string, settings map[string]string) string {
	commit := settings["vcs.revision"]
	if commit != "" && settings["vcs.modified"] == "true" {
		commit += "-dirty"
	}
	return cmp.Or(version, commit, unversioned)
}

// buildSettings are what the compiler has noted in this program.
func buildSettings() map[string]string {
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	return settings
}

// Built is the version of this program, or the commit.
func Built() string { return named(version, buildSettings()) }
