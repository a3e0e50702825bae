package serve

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/weirlog/weir/shared/testenv/fault"
)

// variable makes a test program a server.
const variable = "WEIR_TEST_SERVE"

// served is what variable holds.
type served struct {
	What string
	Dir  string // where it keeps its data
	Port int
}

// Command starts this program once more, as the server that As serves.
func Command(what, dir string, port int) (*fault.Command, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(served{what, dir, port})
	if err != nil {
		return nil, err
	}
	return &fault.Command{Line: []string{program}, Env: []string{variable + "=" + string(text)}}, nil
}

// As serves if a Command of this name started this program, and returns
// otherwise. It is called at a program's start: tests of any package
// may need such a process, and a package has at most one TestMain.
func As(what string, serve func(dir string, port int) error) {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	var s served
	err := json.Unmarshal([]byte(text), &s)
	if err == nil && s.What != what {
		return
	}
	if err == nil {
		err = serve(s.Dir, s.Port)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
