package isolation

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/weirlog/weir/shared/httpapi/openapitest"
)

// clobbering has the collector overwrite what it frees. Else memory that is
// taken again without being cleared shows what was there before.
const clobbering = "clobberfree=1"

// TestMain begins anew with a setting that Go reads at the start of a process
// alone.
func TestMain(m *testing.M) {
	settings := os.Getenv("GODEBUG")
	if !strings.Contains(settings, clobbering) {
		if err := beginWith("GODEBUG", strings.Trim(settings+","+clobbering, ",")); err != nil {
			fmt.Fprintln(os.Stderr, "cannot begin anew:", err)
			os.Exit(1)
		}
	}
	os.Exit(openapitest.Main(m, unproduced))
}

// beginWith makes this process another one of the same program.
// It returns where it can't.
func beginWith(name, value string) error {
	program, err := os.Executable()
	if err == nil {
		err = os.Setenv(name, value)
	}
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	return err
}
