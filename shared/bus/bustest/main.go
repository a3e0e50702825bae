package bustest

import (
	"flag"
	"runtime"
	"strconv"
	"testing"
)

// Main runs the tests of a package, more in parallel than there are
// processors unless a flag sets it: most wait for session timeouts and
// restarts of servers.
func Main(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)+1)); err != nil {
			panic(err)
		}
	}
	return m.Run()
}
