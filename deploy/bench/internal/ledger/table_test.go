package ledger

import (
	"strings"
	"testing"
	"time"
)

// A share without PostgreSQL's part is not judged; one below zero is shown.
func TestSharesOfChecks(t *testing.T) {
	for postmaster, want := range map[int]string{0: "–", 1: "met: of"} {
		w := &world{postmaster: postmaster}
		var out strings.Builder
		if err := (Result{Checks: w.shareOf(effort{own: -1}, effort{own: time.Second})}).Write(&out); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, want) || postmaster == 0 && strings.Contains(text, "met") {
			t.Errorf("with PostgreSQL at %d: %s", postmaster, text)
		}
	}
}
