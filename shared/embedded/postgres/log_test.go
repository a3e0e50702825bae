package postgres

import (
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// fail makes the server log that a value is not a number.
func fail(t *testing.T, s *Server, value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
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
	if err := log.rotate(maxLog); err != nil {
		t.Fatal(err)
	}
	if now := read(t, log.path); !strings.Contains(now, "the second") || strings.Contains(now, "the first") || strings.Contains(now, "\x00") {
		t.Errorf("the log: %q", now)
	}
}

// A start rotates a long log too, and reads only the lines that it has added.
func TestLogIsRotatedAtAStart(t *testing.T) {
	t.Parallel()
	log := serverLog{path: dir(t) + "/server.log"}
	for most, want := range map[int64]string{6: "before", 5: ""} {
		if err := os.WriteFile(log.path, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		from, err := log.open(most)
		if err != nil || read(t, log.path) != want {
			t.Errorf("at most %d bytes: the log is %q, %v", most, read(t, log.path), err)
		}
		file, err := os.OpenFile(log.path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString("added"); err != nil {
			t.Fatal(err)
		}
		file.Close()
		if added, err := log.since(from); err != nil || added != "added" {
			t.Errorf("at most %d bytes: a start has added %q, %v", most, added, err)
		}
	}
}
