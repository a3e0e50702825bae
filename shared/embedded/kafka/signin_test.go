package kafka

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/server"
	"github.com/weirlog/weir/shared/testenv"
)

// A logBuffer collects logged lines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *logBuffer) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(line)
}

func (h *logBuffer) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// guarded starts a broker with a password, and returns the password.
func guarded(t *testing.T, dir string) (b *Broker, password string, log *logBuffer) {
	t.Helper()
	log = &logBuffer{}
	b, err := Start(Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	testenv.Must(t, err)
	t.Cleanup(func() { b.Close() })
	raw, err := os.ReadFile(PasswordFile(dir))
	testenv.Must(t, err)
	return b, strings.TrimSpace(string(raw)), log
}

// ping asks for the topics once.
func ping(t *testing.T, b *Broker, mechanism sasl.Mechanism) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	opts := []kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.DisableClientMetrics(), kgo.RequestRetries(0)}
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	c, err := kgo.NewClient(opts...)
	testenv.Must(t, err)
	defer c.Close()
	_, err = kmsg.NewPtrMetadataRequest().RequestWith(ctx, c)
	return err
}

func secret(user, password string) sasl.Mechanism {
	return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
}

// An unauthenticated client gets no answers: else it could write itself
// an operator's credentials, and read all logs.
func TestUnauthenticatedClientsAreRefused(t *testing.T) {
	b, _, log := guarded(t, t.TempDir())
	for key := range int16(kmsg.MaxKey + 1) {
		request := kmsg.RequestForKey(key)
		if request == nil {
			continue
		}
		want := io.EOF
		switch kmsg.Key(key) {
		case kmsg.ApiVersions, kmsg.SASLHandshake:
			want = nil
		}
		if err := askRaw(t, b.Addr(), request); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", kmsg.NameForKey(key), err, want)
		}
	}
	if !strings.Contains(log.String(), "has not signed in was turned away") || !strings.Contains(log.String(), "request=Produce") {
		t.Errorf("the log does not say so: %s", log)
	}
}

// askRaw sends one request on its own connection and waits for the
// first byte of an answer.
func askRaw(t *testing.T, addr string, request kmsg.Request) error {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	testenv.Must(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	if kmsg.Key(request.Key()) == kmsg.SASLHandshake {
		request.SetVersion(1)
	}
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, request, 7)); err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadFull(conn, make([]byte, 8))
	if err != nil && strings.Contains(err.Error(), "reset by peer") {
		return io.EOF
	}
	return err
}

// The broker keeps no large request of an unauthenticated client in
// memory: it closes the connection at the head.
func TestUnauthenticatedRequestsAreSmall(t *testing.T) {
	b, _, _ := guarded(t, t.TempDir())
	large := kmsg.NewPtrSASLAuthenticateRequest()
	large.SASLAuthBytes = make([]byte, server.UnauthenticatedBytes+1)
	if err := askRaw(t, b.Addr(), large); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want that it hangs up", err)
	}
}

func TestSignIn(t *testing.T) {
	b, password, log := guarded(t, t.TempDir())
	if err := ping(t, b, secret(User, password)); err != nil {
		t.Errorf("the right password is refused: %v", err)
	}
	if strings.Contains(log.String(), "refused") {
		t.Errorf("the log tells of a refusal: %s", log)
	}
	for name, wrong := range map[string]sasl.Mechanism{
		"another password": secret(User, password+"x"),
		"another user":     secret("admin", password),
		"SCRAM-SHA-256":    scram.Auth{User: User, Pass: password}.AsSha256Mechanism(),
		"PLAIN":            plain.Auth{User: User, Pass: password}.AsMechanism(),
	} {
		before := strings.Count(log.String(), "\n")
		if err := ping(t, b, wrong); err == nil {
			t.Errorf("%s is let in", name)
		}
		eventually(t, func() bool { return strings.Count(log.String(), "\n") > before })
		connections := map[string]bool{} // the client tries twice
		for _, line := range strings.Split(strings.TrimSpace(log.String()), "\n")[before:] {
			_, from, _ := strings.Cut(line, "client=")
			if !strings.Contains(line, "a sign-in was refused: ") || connections[from] {
				t.Errorf("%s: the log says %q, want one line for each attempt", name, line)
			}
			connections[from] = true
		}
	}
	if strings.Contains(log.String(), password) {
		t.Error("the password is in the log")
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
	}
}

// The password outlives the process, and only its owner can read it. If
// it is removed or emptied, another one is generated.
func TestPasswordIsKept(t *testing.T) {
	dir := t.TempDir()
	b, first, _ := guarded(t, dir)
	stop(t, b)
	testenv.Must(t, os.Chmod(PasswordFile(dir), 0o644))
	b, second, _ := guarded(t, dir)
	info, err := os.Stat(PasswordFile(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the password's file: %v, %v", info.Mode(), err)
	}
	if err := ping(t, b, secret(User, first)); err != nil || first != second || len(first) < 26 {
		t.Errorf("%v; the same %v, %d characters", err, first == second, len(first))
	}
	for _, lose := range []func() error{
		func() error { return os.Remove(PasswordFile(dir)) },
		func() error { return os.Truncate(PasswordFile(dir), 0) }, // as a power cut may
	} {
		stop(t, b)
		testenv.Must(t, lose())
		var other string
		b, other, _ = guarded(t, dir)
		if err := ping(t, b, secret(User, other)); err != nil || other == first {
			t.Errorf("%v; another %v", err, other != first)
		}
		if err := ping(t, b, secret(User, first)); err == nil {
			t.Error("the password from before still opens")
		}
	}
}

func TestListensToThisMachineAlone(t *testing.T) {
	b, _, _ := guarded(t, t.TempDir())
	if host, _, err := net.SplitHostPort(b.Addr()); err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("it listens on %s: %v", b.Addr(), err)
	}
}

// A broker that can't store a password runs without one only if a
// setting allows it.
func TestOpenBrokerNeedsASetting(t *testing.T) {
	if _, err := Start(Config{Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, errNoPlace) {
		t.Errorf("%v, want %v", err, errNoPlace)
	}
}
