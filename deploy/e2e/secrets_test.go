package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// An installation's secrets are only in dev.env, and the broker's
// password only in a file of the broker, which only their owner can
// read: in no other file of the data directory, no output, no log, and
// nothing that others see of the process.
func (r *repeated) secretsLieInOneFile(t *testing.T) {
	dataDir, broker := r.variables["WEIR_DATA_DIR"], filepath.Join("kafka", "password")
	password, err := os.ReadFile(filepath.Join(dataDir, broker))
	must(t, err)
	secrets := map[string]string{strings.TrimSpace(string(password)): broker}
	for _, secret := range []string{r.first.APIKey, r.first.ServiceToken, r.first.OperatorToken, r.first.ConsolePassword, r.first.WebhookKeys} {
		secrets[secret] = allinone.EnvFile
	}
	files := filesOf(t, dataDir)
	for secret, place := range secrets {
		if info, err := os.Stat(filepath.Join(dataDir, place)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", place, info.Mode(), err)
		}
		if secret == "" || !bytes.Contains(files[place], []byte(secret)) {
			t.Fatalf("%s does not have %q, so nothing is proved of it", place, secret)
		}
		if strings.Contains(r.output, secret) || bytes.Contains(r.seen, []byte(secret)) {
			t.Errorf("a secret of %s is printed, or an argument", place)
		}
		for name, content := range files {
			if name != place && bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s has a secret", name)
			}
		}
	}
}

// commandLine returns what others see of a process.
func commandLine(t *testing.T, running *programs.Process) []byte {
	t.Helper()
	seen, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(running.ID()), "cmdline"))
	must(t, err)
	return seen
}

// filesOf returns the files below a directory, by their paths in it.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		must(t, err)
		files[name], err = os.ReadFile(path)
		return err
	}))
	for _, want := range []string{"kafka", "state"} {
		if found, _ := filepath.Glob(filepath.Join(dir, want, "*")); len(found) == 0 {
			t.Errorf("there is nothing in %s", want)
		}
	}
	return files
}
