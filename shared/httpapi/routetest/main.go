package routetest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Main runs a package's tests, for its TestMain, and returns the exit status:
// not 0 too where a route of Handler was never answered without an error. It
// looks at routes where all tests ran only.
func Main(m *testing.M) int {
	status := m.Run()
	if status != 0 || isPart() {
		return status
	}
	if untried := observed.untried(); len(untried) > 0 {
		fmt.Fprintf(os.Stderr, "routes that no test of this package has answered without an error:\n\t%s\n", strings.Join(untried, "\n\t"))
		return 1
	}
	return 0
}

// isPart reports whether only some tests were asked for.
func isPart() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.short"} {
		if value := flag.Lookup(name).Value.String(); value != "" && value != "false" {
			return true
		}
	}
	return false
}
