package postgres

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
			if err := test.lose(s.cluster.home.passwordFile()); err != nil {
				t.Fatal(err)
			}
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
	if err := os.WriteFile(filepath.Join(home, "password"), []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: home, Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "remove the file") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
