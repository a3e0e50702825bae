package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/testenv"
)

// Foreign text is shown, and none of it commands the terminal.
func TestText(t *testing.T) {
	for _, c := range []struct{ text, line, exact string }{
		{"caf\u00e9 \u4e16\u754c", "caf\u00e9 \u4e16\u754c", "caf\u00e9 \u4e16\u754c"},
		{"a\n\tb\r", "a  b ", `a\x0a\x09b\x0d`},
		{`C:\x1b`, `C:\x1b`, `C:\\x1b`},
		{"\x1b[2J\x9b31m\x7f", `\x1b[2J\x9b31m\x7f`, `\x1b[2J\x9b31m\x7f`},
		{"\u202edlrow\u009b31m\u200b", `\u202edlrow\u009b31m\u200b`, `\u202edlrow\u009b31m\u200b`},
	} {
		if line, exact := Line(c.text), Exact(c.text); line != c.line || exact != c.exact {
			t.Errorf("%q: %q, %q", c.text, line, exact)
		}
	}
	if got := ExactLines("a\x00\nb"); got != "a\\x00\nb" {
		t.Errorf("got %q", got)
	}
}

// A table fits the terminal; elsewhere it is whole.
func TestTable(t *testing.T) {
	rows := [][]string{
		{"grp_1", "error", "no route to \u4e16\u754c and further"}, {strings.Repeat("i", 40), "info", "ok\x1b[2J"},
	}
	table := func(s Screen) string {
		var out strings.Builder
		s.Writer = &out
		testenv.Must(t, s.Table([]string{"ID", "LEVEL", "MESSAGE"}, rows))
		return out.String()
	}
	whole := table(Screen{})
	if !strings.Contains(whole, "\u754c and further\n") || !strings.Contains(whole, strings.Repeat("i", 40)+`  info   ok\x1b[2J`) {
		t.Errorf("got\n%s", whole)
	}
	narrow := table(Screen{Width: 60})
	if want := "grp_1" + strings.Repeat(" ", 33) + "error  no route to \u4e16\u754c\u2026\n"; !strings.Contains(narrow, want) {
		t.Errorf("got\n%s", narrow)
	}
	for line := range strings.Lines(narrow) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if colored := table(Screen{Width: 60, Color: true}); !strings.Contains(colored, "\x1b[31merror  \x1b[0mno") || strings.Count(colored, "\x1b") != 2 {
		t.Errorf("got %q", colored)
	}
}

// On a terminal the same JSON has escapes; elsewhere it is as it was sent.
func TestJSON(t *testing.T) {
	sent := []byte("{\"a\":\"\u4e16\u009b31m\u202e \\u001b \U000e0001\"}")
	for width, want := range map[int]string{0: string(sent) + "\n", 80: `{"a":"` + "\u4e16" + `\u009b31m\u202e \u001b \udb40\udc01"}` + "\n"} {
		var out strings.Builder
		if err := (Screen{Writer: &out, Width: width}).JSON(sent); err != nil || out.String() != want {
			t.Errorf("%d: %q, %v", width, out.String(), err)
		}
	}
}

// What is no terminal gets neither colours nor cuts.
func TestOf(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	testenv.Must(t, err)
	defer file.Close()
	if s := Of(file); s.Width != 0 || s.Color || s.Level("error", "ERROR") != "ERROR" {
		t.Errorf("got %+v", s)
	}
}
