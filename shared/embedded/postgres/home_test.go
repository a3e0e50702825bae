package postgres

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/testenv"
)

// A database whose password is lost gets another one and keeps its data,
// also if its server was killed, or runs on.
func TestLostPassword(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lose func(path string) error
		end  func(t *testing.T, s *Server)
	}{
		"emptied":     {emptied, stop},
		"removed":     {os.Remove, stop},
		"of a killed": {emptied, kill},
		"of a live": {os.Remove, func(_ *testing.T, s *Server) {
			s.cluster.home.close() // as the kernel does when the caller is killed
		}},
	} {
		t.Run(name, func(t *testing.T) {
			home := made(t)
			s := start(t, Config{Dir: home})
			create(t, s.URL())
			insert(t, s.URL(), "INSERT INTO kept VALUES (1)")
			test.end(t, s)
			testenv.Must(t, test.lose(s.cluster.home.passwordFile()))
			for range 2 { // the second start finds the new one
				s = start(t, Config{Dir: home})
				if n := query[int](t, s.URL(), "SELECT count(*) FROM kept"); n != 1 {
					t.Errorf("%d rows, want 1", n)
				}
				stop(t, s)
			}
			log, err := os.ReadFile(s.LogFile())
			if err != nil || strings.Contains(string(log), s.password) {
				t.Errorf("the log has the password, or can't be read: %v", err)
			}
		})
	}
}

func emptied(path string) error { return os.Truncate(path, 0) }

// A wrong password is no reason to give the data up.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	home := made(t)
	testenv.Must(t, os.WriteFile(filepath.Join(home, "password"), []byte("another\n"), 0o600))
	_, err := Start(t.Context(), Config{Dir: home, Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "remove the file") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

// fail makes the server log that a value is not a number.
func fail(t *testing.T, s *Server, value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	testenv.Must(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "SELECT '"+value+"'::int"); err == nil {
		t.Error("nothing fails")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(raw)
}

// A long log is rotated while the server runs, and the former one kept;
// a short one continues.
func TestLogIsRotated(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: made(t), Throwaway: true})
	defer stop(t, s)
	log := s.cluster.log()
	fail(t, s, "the first")
	end := log.keep(1, time.Millisecond, slog.New(slog.DiscardHandler))
	for !strings.Contains(read(t, log.former()), "the first") {
		runtime.Gosched()
	}
	end()
	fail(t, s, "the second")
	testenv.Must(t, log.rotate(maxLog))
	if now := read(t, log.path); !strings.Contains(now, "the second") || strings.Contains(now, "the first") || strings.Contains(now, "\x00") {
		t.Errorf("the log: %q", now)
	}
}

// A start rotates a long log too, and reads only the lines that it has added.
func TestLogIsRotatedAtAStart(t *testing.T) {
	t.Parallel()
	log := serverLog{path: dir(t) + "/server.log"}
	for most, want := range map[int64]string{6: "before", 5: ""} {
		testenv.Must(t, os.WriteFile(log.path, []byte("before"), 0o600))
		from, err := log.open(most)
		if err != nil || read(t, log.path) != want {
			t.Errorf("at most %d bytes: the log is %q, %v", most, read(t, log.path), err)
		}
		file, err := os.OpenFile(log.path, os.O_APPEND|os.O_WRONLY, 0)
		testenv.Must(t, err)
		if _, err := file.WriteString("added"); err != nil {
			t.Fatal(err)
		}
		file.Close()
		if added, err := log.since(from); err != nil || added != "added" {
			t.Errorf("at most %d bytes: a start has added %q, %v", most, added, err)
		}
	}
}
