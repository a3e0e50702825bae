package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

type config struct {
	Wait   time.Duration  `help:"How long | at most." env:"WEIR_WAIT" default:"3s"`
	Token  httpapi.Secret `help:"A token." env:"WEIR_TOKEN" required:""`
	Level  string         `help:"How much." env:"WEIR_LEVEL" enum:"low,high" default:"low"`
	Names  []string       `help:"Names."`
	Parts  string         `help:"Parts: ${ledger_parts}."`
	Hidden bool           `help:"Nobody sees it." hidden:"" env:"WEIR_HIDDEN"`
}

// Each setting is listed once, with all programs that take it alike,
// and its possible values.
func TestWrite(t *testing.T) {
	var page strings.Builder
	type other struct {
		Wait time.Duration `help:"How long to wait elsewhere." env:"WEIR_WAIT" default:"9s"`
	}
	testenv.Must(t, Write(&page, []Program{{"one", &config{}}, {"two", &config{}}, {"three", &other{}}}))
	for _, line := range []string{
		"| `WEIR_WAIT` | `--wait` | duration | `3s` | one, two | How long \\| at most. |\n",
		"| `WEIR_WAIT` | `--wait` | duration | `9s` | three | How long to wait elsewhere. |\n",
		"| `WEIR_TOKEN` | `--token` | secret | required | one, two | A token. |\n",
		"| `WEIR_LEVEL` | `--level` | `low`, `high` | `low` | one, two | How much. |\n",
		"| `--parts` | text |  | one, two | Parts: see --help. |\n",
		"| `--names` | list of text |  | one, two | Names. |\n",
	} {
		if strings.Count(page.String(), line) != 1 {
			t.Errorf("there is not once %q in\n%s", line, page.String())
		}
	}
	if strings.Contains(page.String(), "HIDDEN") {
		t.Error("what is hidden is shown")
	}
}
