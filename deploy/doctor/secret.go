package doctor

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/process"
)

// secrets checks the files with secrets: each can be read, is not
// empty, and can't be read by everybody.
func (e *examination) secrets() {
	files := e.secretFiles()
	for _, variable := range slices.Sorted(maps.Keys(files)) {
		file := files[variable]
		if base := strings.TrimSuffix(variable, process.FileSuffix); os.Getenv(base) != "" {
			e.report.add(Fail, "secret", variable, base+" is set, too", "Set one of the two: services refuse both.")
			continue
		}
		if _, err := process.SecretIn(file, variable); err != nil {
			e.report.add(Fail, "secret", variable, err.Error(), "Write the secret into the file, and let the service's user read it.")
			continue
		}
		e.worldReadable(variable, file)
	}
}

// secretFiles returns the variables that name a file with a secret.
func (e *examination) secretFiles() map[string]string {
	known := append(secretVariables(e.catalogue), endpoint.SharedDatabase)
	for _, m := range modules {
		known = append(known, endpoint.DatabaseOf(m.name))
	}
	files := map[string]string{}
	for _, name := range known {
		if file := os.Getenv(name + process.FileSuffix); file != "" {
			files[name+process.FileSuffix] = file
		}
	}
	for name, file := range map[string]string{
		"WEIR_BROKERS_PASSWORD_FILE": e.BrokerAccess.PasswordFile, "WEIR_BROKERS_TOKEN_FILE": e.BrokerAccess.TokenFile,
		"WEIR_BROKERS_KEY_FILE": e.BrokerAccess.KeyFile,
	} {
		if file != "" {
			files[name] = file
		}
	}
	return files
}

// worldReadable checks whether every user of the machine can read a
// file: its mode and those of all directories above.
func (e *examination) worldReadable(what, file string) {
	info, err := os.Stat(file)
	if err != nil {
		return // its reader reports that
	}
	seen := fmt.Sprintf("%s has the mode %04o", file, info.Mode().Perm())
	if info.Mode().Perm()&0o004 != 0 && e.Machine.Passable(filepath.Dir(file)) {
		e.report.add(Warn, "secret", what, seen+": every user of this machine can read it",
			"Take the right from others (chmod o-rwx), or close the directory (chmod 0700).")
		return
	}
	e.report.add(OK, "secret", what, seen, "")
}

// passable reports whether every user may pass through a directory and
// all above it. A container's first process has no other users beside it.
func passable(dir string) bool {
	const first = 1
	if os.Getpid() == first {
		return false
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return true
	}
	for {
		info, err := os.Stat(dir)
		if err == nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}
