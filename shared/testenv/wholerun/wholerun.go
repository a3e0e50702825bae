package wholerun

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// A Check finds what a package's tests left out.
type Check struct {
	What string // the text before what was found
	Find func() []string
}

// Main runs the tests, for a TestMain, and returns the exit status:
// also not 0 if all tests ran and a check finds something.
func Main(m *testing.M, checks ...Check) int {
	status := m.Run()
	if status != 0 || isPart() {
		return status
	}
	return report(os.Stderr, checks)
}

// report prints what the checks find, and returns the exit status.
func report(w io.Writer, checks []Check) (status int) {
	for _, check := range checks {
		if found := check.Find(); len(found) > 0 {
			fmt.Fprintf(w, "%s:\n\t%s\n", check.What, strings.Join(found, "\n\t"))
			status = 1
		}
	}
	return status
}

// isPart reports whether only some tests were selected.
func isPart() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.short"} {
		if value := flag.Lookup(name).Value.String(); value != "" && value != "false" {
			return true
		}
	}
	return false
}
