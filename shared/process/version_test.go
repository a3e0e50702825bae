package process

import (
	"strings"
	"testing"
)

// A program's version is the linker's, else its commit.
func TestVersion(t *testing.T) {
	committed := map[string]string{"vcs.revision": "ca80d46", "vcs.modified": "false"}
	changed := map[string]string{"vcs.revision": "ca80d46", "vcs.modified": "true"}
	for _, c := range []struct {
		version  string
		settings map[string]string
		want     string
	}{
		{"v1.4.0", changed, "v1.4.0 (go"},
		{"", committed, "ca80d46 (go"},
		{"", changed, "ca80d46-dirty (go"},
		{"", nil, "unversioned (go"},
	} {
		var out strings.Builder
		if err := writeVersion(&out, c.version, c.settings); err != nil || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%q, %v: printed %q, %v", c.version, c.settings, out.String(), err)
		}
	}
}
