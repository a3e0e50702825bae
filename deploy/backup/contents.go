package backup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// security matches the lines of a dump's contents that create
// row level security.
var security = regexp.MustCompile(`^\d+; \d+ \d+ (ROW SECURITY|POLICY) `)

// passes writes a dump's contents to two files in a folder: all else,
// and then row level security. In parallel, a table would be closed
// before its policy exists, and foreign keys be compared with nothing.
func passes(ctx context.Context, program, dump, folder string) (lists []string, err error) {
	out, err := exec.CommandContext(ctx, program, "--list", dump).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot read the contents of %s: %w", dump, err)
	}
	var parts [2]strings.Builder
	for line := range strings.Lines(string(out)) {
		part := &parts[0]
		if security.MatchString(line) {
			part = &parts[1]
		}
		part.WriteString(line)
	}
	for i := range parts {
		list := filepath.Join(folder, fmt.Sprintf("pass-%d", i+1))
		if err := os.WriteFile(list, []byte(parts[i].String()), 0o600); err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return lists, nil
}
