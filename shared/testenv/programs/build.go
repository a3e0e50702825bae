package programs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/testenv/filelock"
)

// Build returns the path of a program, which is alone in its folder. Its main
// package is named by the path from the root of the repository: ledger/cmd/ledger.
func Build(t testing.TB, main string) string {
	t.Helper()
	once, _ := built.LoadOrStore(main, sync.OnceValues(func() (string, error) { return build(main) }))
	program, err := once.(func() (string, error))()
	if err != nil {
		t.Fatalf("testenv: cannot build %s: %v", main, err)
	}
	return program
}

// built are the programs of this process, by main package.
var built sync.Map

// build leaves the program where the next run finds it: the same one is not
// linked again, which takes a second. So it does not name the commit either.
func build(main string) (program string, err error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, "bin", "test", main)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	turn, err := filelock.Take(folder + ".lock") // tests of other packages may build it too
	if err != nil {
		return "", err
	}
	defer turn.Close()
	program = filepath.Join(folder, filepath.Base(main))
	module, rest, _ := strings.Cut(main, "/")
	command := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s", "-o", program, "./"+rest)
	command.Dir = filepath.Join(root, module)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
}

// repository returns its root, above the tested package.
func repository() (string, error) {
	folder, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("no go.work above: run the tests in a clone of the repository")
		}
		folder = parent
	}
	return "", err
}
