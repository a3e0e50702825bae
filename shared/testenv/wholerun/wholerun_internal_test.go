package wholerun

import (
	"strings"
	"testing"
)

// What a check finds is printed, and ends the run with an error.
func TestReport(t *testing.T) {
	none := Check{"nothing", func() []string { return nil }}
	some := Check{"routes without a test", func() []string { return []string{"GET /a", "GET /b"} }}
	var printed strings.Builder
	if status := report(&printed, []Check{none}); status != 0 || printed.Len() > 0 {
		t.Errorf("status %d, %q", status, printed.String())
	}
	if status := report(&printed, []Check{some, none}); status != 1 || printed.String() != "routes without a test:\n\tGET /a\n\tGET /b\n" {
		t.Errorf("status %d, %q", status, printed.String())
	}
}
