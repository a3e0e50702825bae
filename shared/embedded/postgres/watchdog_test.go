package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// envThrowaway makes the test's program start a throwaway server in the
// folder that it names. It panics, as a test that times out does, once
// its standard input ends.
const envThrowaway = "WEIR_TEST_THROWAWAY"

func serveThrowaway(home string) {
	s, err := Start(context.Background(), Config{Dir: home, Throwaway: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	file, _ := s.cluster.readPid()
	fmt.Println(file.pid, s.cluster.home.dir)
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	panic("test timed out")
}

func homeBelow(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	above := dir(t)
	if err := os.Chmod(above, mode); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(above, "home")
}

// A throwaway server is a caller's, in another process.
type throwaway struct {
	caller *exec.Cmd
	end    func() error // lets the caller panic
	said   *bufio.Scanner
}

func startThrowaway(t *testing.T, home string) throwaway {
	t.Helper()
	caller := exec.Command(os.Args[0])
	caller.Env = append(os.Environ(), envThrowaway+"="+home)
	in, inErr := caller.StdinPipe()
	out, outErr := caller.StdoutPipe()
	if err := errors.Join(inErr, outErr, caller.Start()); err != nil {
		t.Fatal(err)
	}
	return throwaway{caller, in.Close, bufio.NewScanner(out)}
}

// place waits for the server, and returns its process and its folder.
func (s throwaway) place(t *testing.T) (pid int, dir string) {
	t.Helper()
	if !s.said.Scan() {
		t.Fatalf("no server: %v", s.caller.Wait())
	}
	id, dir, _ := strings.Cut(s.said.Text(), " ")
	pid, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	return pid, dir
}

func (s throwaway) kill(t *testing.T) {
	t.Helper()
	if err := s.caller.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// awaitGone waits until none of the paths exists.
func awaitGone(t *testing.T, paths ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, path := range paths {
		for _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist); _, err = os.Stat(path) {
			if lifecycle.Pause(ctx, 10*time.Millisecond); ctx.Err() != nil {
				t.Fatalf("%s is left behind", path)
			}
		}
	}
}

// A throwaway server ends within seconds of its caller, however that
// ends, and nothing of it is left.
func TestEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s throwaway, pid int){
		"killed":   func(t *testing.T, s throwaway, _ int) { s.kill(t) },
		"panicked": func(_ *testing.T, s throwaway, _ int) { _ = s.end() },
		"killed beside a stopped server": func(t *testing.T, s throwaway, pid int) {
			signal(t, pid, syscall.SIGSTOP)
			s.kill(t)
		},
	} {
		for _, mode := range []fs.FileMode{0o755, 0o700} { // the server's account may not reach the second
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				home := homeBelow(t, mode)
				s := startThrowaway(t, home)
				pid, place := s.place(t)
				end(t, s, pid)
				if err := s.caller.Wait(); err == nil {
					t.Error("the caller ended in order")
				}
				awaitGone(t, place, home)
				if isPostgres(pid) {
					t.Error("the server still runs")
				}
			})
		}
	}
}

// A caller that is killed before its server runs leaves nothing either.
func TestKilledWhileItStarts(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"password", "data.new/PG_VERSION", "data/postmaster.pid"} {
		t.Run(strings.ReplaceAll(part, "/", " "), func(t *testing.T) {
			t.Parallel()
			home := homeBelow(t, 0o755)
			s := startThrowaway(t, home)
			for t.Context().Err() == nil {
				if _, err := os.Stat(filepath.Join(home, part)); err == nil {
					break
				}
				lifecycle.Pause(t.Context(), time.Millisecond)
			}
			s.kill(t)
			_ = s.caller.Wait() // killed
			awaitGone(t, home)
			lifecycle.Pause(t.Context(), 2*time.Second) // initdb and pg_ctl notice that it is gone
			awaitGone(t, home)
		})
	}
}
