package fault_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
)

// echo is an echo server with a network before it.
func echo(t *testing.T) *fault.Network {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	n, err := fault.NewNetwork(listener.Addr().String())
	testenv.Must(t, err)
	t.Cleanup(n.Close)
	return n
}

func dial(t *testing.T, n *fault.Network) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", n.Address())
	testenv.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// says sends a text and returns how long its echo takes.
func says(t *testing.T, conn net.Conn, text string) time.Duration {
	t.Helper()
	begin := time.Now()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("%q came back as %q: %v", text, got, err)
	}
	return time.Since(begin)
}

// receives reports whether anything comes within a moment.
func receives(t *testing.T, conn net.Conn) bool {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	defer conn.SetReadDeadline(time.Time{})
	n, err := conn.Read(make([]byte, 1))
	if n == 0 && !errors.Is(err, syscall.ETIMEDOUT) && !isTimeout(err) {
		t.Fatalf("the connection broke: %v", err)
	}
	return n > 0
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A network carries everything, including an orderly end.
func TestCarries(t *testing.T) {
	conn := dial(t, echo(t))
	says(t, conn, strings.Repeat("x", 1<<20))
	conn.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("%d bytes and %v after the end, want none", len(rest), err)
	}
}

func TestCutRefusesUntilHealed(t *testing.T) {
	n := echo(t)
	conn := dial(t, n)
	says(t, conn, "before")
	n.Cut()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an open connection ended with %v, want a reset", err)
	}
	if _, err := net.Dial("tcp", n.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection ended with %v, want it refused", err)
	}
	testenv.Must(t, n.Heal())
	says(t, dial(t, n), "after")
}

func TestResetBreaksOnlyWhatIsOpen(t *testing.T) {
	n := echo(t)
	conn := dial(t, n)
	says(t, conn, "before")
	n.Reset()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an open connection ended with %v, want a reset", err)
	}
	says(t, dial(t, n), "after")
}

// What goes into a black hole arrives after Heal, complete and in
// order, as TCP sends it again.
func TestBlackHoleHoldsEverything(t *testing.T) {
	n := echo(t)
	before := dial(t, n)
	says(t, before, "before")
	n.BlackHole()
	during := dial(t, n)
	io.WriteString(before, "one")
	io.WriteString(during, "two")
	if receives(t, before) || receives(t, during) {
		t.Error("an answer came out of a black hole")
	}
	testenv.Must(t, n.Heal())
	got := make([]byte, 3)
	if _, err := io.ReadFull(before, got); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := io.ReadFull(during, got); err != nil || string(got) != "two" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDelayAndTrickleTakeTheirTime(t *testing.T) {
	n := echo(t)
	conn := dial(t, n)
	n.Delay(30 * time.Millisecond)
	if took := says(t, conn, strings.Repeat("x", 1<<20)); took < 60*time.Millisecond {
		t.Errorf("there and back took %s, want 60 ms and more", took)
	}
	n.Heal()
	n.Trickle(1000)
	if took := says(t, conn, strings.Repeat("x", 200)); took < 200*time.Millisecond {
		t.Errorf("200 bytes took %s at 1000 a second", took)
	}
}

// A fault that needs the test's own process fails the test, with the reason.
func TestGivenServersCannotBeKilled(t *testing.T) {
	p := fault.Given("WEIR_TEST_BROKERS")
	for name, do := range map[string]func() error{"pause": p.Pause, "resume": p.Resume, "kill": p.Kill, "start": p.Start, "restart": p.Restart} {
		if err := do(); !errors.Is(err, fault.ErrGiven) || !strings.Contains(err.Error(), "WEIR_TEST_BROKERS") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
