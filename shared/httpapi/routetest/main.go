package routetest

import (
	"testing"

	"github.com/weirlog/weir/shared/testenv/wholerun"
)

// Main runs a package's tests, for its TestMain, and returns the exit
// status: also not 0 if a route of Handler was never answered without
// an error. It checks routes only if all tests ran.
func Main(m *testing.M) int {
	return wholerun.Main(m, wholerun.Check{What: "routes that no test of this package has answered without an error", Find: observed.untried})
}
