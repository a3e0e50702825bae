package isolation

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/weirlog/weir/shared/httpapi/openapitest"
)

// clobbering makes the collector overwrite what it frees. Otherwise
// memory that is used again without being cleared shows its old content.
const clobbering = "clobberfree=1"

// TestMain starts the process again with a setting that Go reads only
// at its start.
func TestMain(m *testing.M) {
	settings := os.Getenv("GODEBUG")
	if !strings.Contains(settings, clobbering) {
		if err := beginWith("GODEBUG", strings.Trim(settings+","+clobbering, ",")); err != nil {
			fmt.Fprintln(os.Stderr, "cannot start again:", err)
			os.Exit(1)
		}
	}
	os.Exit(openapitest.Main(m, unproduced))
}

// beginWith replaces this process by another of the same program. It
// returns if it can't.
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
