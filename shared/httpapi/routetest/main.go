package routetest

import (
	"testing"

	"github.com/weirlog/weir/shared/testenv/wholerun"
)

// Main runs a package's tests, for its TestMain, and returns the exit status:
// not 0 too where a route of Handler was never answered without an error. It
// looks at routes where all tests ran only.
func Main(m *testing.M) int {
	return wholerun.Main(m, wholerun.Check{What: "routes that no test of this package has answered without an error", Find: observed.untried})
}
