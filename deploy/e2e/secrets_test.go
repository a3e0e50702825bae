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
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// An installation's secrets are only in dev.env, and the broker's
// password only in a file of the broker, which only their owner can
// read: in no other file of the data directory, no output, no log, and
// nothing that others see of the process.
func TestSecretsLieInOneFile(t *testing.T) {
	dataDir := t.TempDir()
	running := programs.Launch(t, programs.Build(t, "deploy/cmd/weir"), map[string]string{
		"WEIR_LISTEN": "localhost:0", "WEIR_DATA_DIR": dataDir, "WEIR_DATABASE_URL": postgrestest.URL(t), "WEIR_LOG_LEVEL": "debug",
	}, "run")
	env := awaitEnv(t, running, dataDir)
	in := connect(t, env.BaseURL, env.CAFile, env.OperatorToken)
	entries := (&maker{mark: "kept"}).some(5)
	deliver(t, t.Context(), in, tenant{organization: env.Organization, project: env.Project, key: env.APIKey, billing: env.ServiceToken}, "kept",
		plainly(body(texts(entries)...)), entries, &history{})
	broker := filepath.Join("kafka", "password")
	password, err := os.ReadFile(filepath.Join(dataDir, broker))
	must(t, err)
	secrets := map[string]string{strings.TrimSpace(string(password)): broker}
	for _, secret := range []string{env.APIKey, env.ServiceToken, env.OperatorToken, env.ConsolePassword, env.WebhookKeys} {
		secrets[secret] = allinone.EnvFile
	}
	seen, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(running.ID()), "cmdline"))
	must(t, err)
	if err := running.Stop(); err != nil {
		t.Fatalf("did not stop in order: %v\n%s", err, running.Output)
	}
	files := filesOf(t, dataDir)
	for secret, place := range secrets {
		if info, err := os.Stat(filepath.Join(dataDir, place)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", place, info.Mode(), err)
		}
		if secret == "" || !bytes.Contains(files[place], []byte(secret)) {
			t.Fatalf("%s does not have %q, so nothing is proved of it", place, secret)
		}
		if strings.Contains(running.Output.String(), secret) || bytes.Contains(seen, []byte(secret)) {
			t.Errorf("a secret of %s is printed, or an argument", place)
		}
		for name, content := range files {
			if name != place && bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s has a secret", name)
			}
		}
	}
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
