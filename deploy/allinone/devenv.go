package allinone

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/atomicfile"
)

// EnvFile is the name of the data directory's file with shell variables
// that reach the demo organization.
const EnvFile = "dev.env"

// A DevEnv is what a client on this machine needs. It is also the only store
// of the demo organization's credentials: all others keep only hashes.
type DevEnv struct {
	BaseURL         string // ends in /v1
	CAFile          string // absolute
	APIKey          string // of the demo organization, environment prod
	ServiceToken    string // billing:read of the demo organization
	OperatorToken   string // creates organizations
	Organization    string
	Project         string
	ConsoleURL      string
	ConsoleEmail    string
	ConsolePassword string
	WebhookKeys     string // the secrets of webhooks derive from them
}

type variable struct {
	name  string
	value *string
}

func (e *DevEnv) variables() []variable {
	return []variable{
		{"WEIR_BASE_URL", &e.BaseURL},
		{"WEIR_CA_FILE", &e.CAFile},
		{"WEIR_API_KEY", &e.APIKey},
		{"WEIR_SERVICE_TOKEN", &e.ServiceToken},
		{"WEIR_OPERATOR_TOKEN", &e.OperatorToken},
		{"WEIR_ORGANIZATION", &e.Organization},
		{"WEIR_PROJECT", &e.Project},
		{"WEIR_CONSOLE_URL", &e.ConsoleURL},
		{"WEIR_CONSOLE_EMAIL", &e.ConsoleEmail},
		{"WEIR_CONSOLE_PASSWORD", &e.ConsolePassword},
		{"WEIR_WEBHOOK_KEYS", &e.WebhookKeys},
	}
}

// ReadDevEnv reads the file at path; without one it returns the zero
// value. A file without values is damaged: it held the only copy.
func ReadDevEnv(path string) (env DevEnv, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return env, nil
	}
	if err != nil {
		return env, fmt.Errorf("cannot read %q: %w", path, err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if err := env.read(lines.Text()); err != nil {
			return env, fmt.Errorf("%q is damaged: %w: repair it, or remove it to get another demo organization", path, err)
		}
	}
	if err := lines.Err(); err != nil {
		return env, fmt.Errorf("cannot read %q: %w", path, err)
	}
	if env == (DevEnv{}) {
		return env, fmt.Errorf("%q is damaged: it has no values: repair it, or remove it to get another demo organization", path)
	}
	return env, nil
}

func (e *DevEnv) read(line string) error {
	if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	name, quoted, ok := strings.Cut(line, "=")
	value, unquoted := unquote(quoted)
	if !ok || !unquoted {
		return fmt.Errorf("the line that begins with %q is none of NAME='value'", name)
	}
	for _, v := range e.variables() {
		if v.name == name {
			*v.value = value
		}
	}
	return nil
}

// Write replaces the file at path atomically, also in a power cut. Only
// its owner may read it. A file with the same values stays, so that it
// needs no space on a full disk.
func (e *DevEnv) Write(path string) error {
	if was, err := ReadDevEnv(path); err == nil && was == *e {
		return nil
	}
	text := "# How to reach the demo organization: . " + quote(path) + "\n"
	for _, v := range e.variables() {
		text += v.name + "=" + quote(*v.value) + "\n"
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}

// maxKept is how many earlier files KeepDevEnv leaves.
const maxKept = 5

// KeepDevEnv copies the file at path to path.<time>, so that the
// credentials in it outlive another demo organization, and returns where
// to. The newest five copies stay.
func KeepDevEnv(path string, at time.Time) (kept string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot keep %q: %w", path, err)
	}
	kept = path + "." + at.UTC().Format("20060102T150405.000Z")
	if err := atomicfile.Write(kept, string(text), 0o600); err != nil {
		return "", fmt.Errorf("cannot keep %q: %w", path, err)
	}
	return kept, dropOldest(filepath.Dir(path), filepath.Base(path)+".2")
}

// dropOldest removes all but the newest kept files of a folder, whose
// names begin with a prefix and sort by their time.
func dropOldest(dir, prefix string) error {
	files, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f fs.DirEntry) bool { return !strings.HasPrefix(f.Name(), prefix) })
	for _, f := range files[:max(0, len(files)-maxKept)] {
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// quote quotes text as one word of a POSIX shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func unquote(word string) (text string, ok bool) {
	word = strings.TrimSpace(word)
	if len(word) < 2 || word[0] != '\'' || word[len(word)-1] != '\'' {
		return "", false
	}
	return strings.ReplaceAll(word[1:len(word)-1], `'\''`, "'"), true
}
