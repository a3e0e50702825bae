package bus_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	embedded "github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv"
)

// guarded starts a broker that demands authentication, and returns how.
func guarded(t *testing.T) (brokers []string, access bus.Access) {
	t.Helper()
	dir := t.TempDir()
	b, err := embedded.Start(embedded.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	testenv.Must(t, err)
	t.Cleanup(func() { b.Close() })
	return []string{b.Addr()}, bus.Access{User: embedded.User, PasswordFile: embedded.PasswordFile(dir)}
}

// ensureAs creates a topic as the user of access.
func ensureAs(t *testing.T, brokers []string, access bus.Access, topic string, limit time.Duration) (*kafka.Dialer, error) {
	t.Helper()
	dialer, err := access.Dialer()
	testenv.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return dialer, topics.EnsureWith(ctx, brokers, dialer, []contract.Topic{{Name: topic, Partitions: 2}})
}

// All parts of the bus work with authentication.
func TestSignedIn(t *testing.T) {
	t.Parallel()
	brokers, access := guarded(t)
	signedIn(t, brokers, access, "test.access")
}

func signedIn(t *testing.T, brokers []string, access bus.Access, topic string) {
	t.Helper()
	pool := bustest.Database(t)
	dialer, err := ensureAs(t, brokers, access, topic, testenv.Patience)
	testenv.Must(t, err)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, Dialer: dialer})
	bustest.Publish(t, p, topic, 0, 10, 3)

	applied := make(chan int, 10)
	cfg := bustest.QuickConsumer(brokers, topic, pool, func(_ context.Context, _ pgx.Tx, records []bus.Record) error {
		applied <- len(records)
		return nil
	})
	cfg.Dialer = dialer
	bustest.StartConsumer(t, cfg)
	for n := 0; n < 10; {
		select {
		case more := <-applied:
			n += more
		case <-time.After(testenv.Patience):
			t.Fatalf("the consumer applied %d of 10", n)
		}
	}

	reader := state.NewReader(state.Config{Brokers: brokers, Dialer: dialer, Topic: topic, Apply: func(bus.Record) error { return nil }}, testenv.Logger(t))
	bustest.Run(t, reader.Run)
	select {
	case <-reader.Ready():
	case <-time.After(testenv.Patience):
		t.Error("the state reader is not ready")
	}
}

// Each connection signs in with the file's password of that moment.
func TestChangedPassword(t *testing.T) {
	t.Parallel()
	brokers, access := guarded(t)
	right, err := os.ReadFile(access.PasswordFile)
	testenv.Must(t, err)
	access.PasswordFile = filepath.Join(t.TempDir(), "password")
	set := func(password string) {
		t.Helper()
		testenv.Must(t, os.WriteFile(access.PasswordFile, []byte(password), 0o600))
	}
	set("guessed")
	dialer, err := access.Dialer()
	testenv.Must(t, err)
	connect := func() error {
		conn, err := dialer.DialContext(t.Context(), "tcp", brokers[0])
		if err == nil {
			conn.Close()
		}
		return err
	}
	if connect() == nil {
		t.Fatal("the broker took a guessed password")
	}
	set(string(right))
	if err := connect(); err != nil {
		t.Errorf("with the right one: %v", err)
	}
	set("")
	if err := connect(); err == nil || !strings.Contains(err.Error(), "holds no password") {
		t.Errorf("with none: %v", err)
	}
}

// A refusal is reported at once, with what to check.
func TestRefusedSignIn(t *testing.T) {
	t.Parallel()
	brokers, access := guarded(t)
	refusedSignIn(t, brokers, access)
}

// refusedSignIn tries wrong passwords, and none.
func refusedSignIn(t *testing.T, brokers []string, access bus.Access) {
	t.Helper()
	wrong := filepath.Join(t.TempDir(), "password")
	testenv.Must(t, os.WriteFile(wrong, []byte("guessed\n"), 0o600))
	for _, mechanism := range []string{"SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"} {
		access.PasswordFile, access.Mechanism = wrong, mechanism
		_, err := ensureAs(t, brokers, access, "test.refused", testenv.Patience)
		if err == nil || !strings.Contains(err.Error(), "refuses the user") || !strings.Contains(err.Error(), "WEIR_BROKERS_PASSWORD_FILE") {
			t.Errorf("%s: %v", mechanism, err)
		}
		if err != nil && strings.Contains(err.Error(), "guessed") {
			t.Errorf("%s: the error shows the password: %v", mechanism, err)
		}
	}
	access.User, access.PasswordFile = "", ""
	for limit := time.Second; ; limit *= 2 { // a broker that refuses is silent, so this tries until its time is up
		_, err := ensureAs(t, brokers, access, "test.refused", limit)
		if err != nil && strings.Contains(err.Error(), "WEIR_BROKERS_USER") {
			return
		}
		if err == nil || limit > testenv.Patience {
			t.Fatalf("without a user: %v", err)
		}
	}
}

func TestAccessSettings(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	testenv.Must(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for name, c := range map[string]struct {
		access bus.Access
		want   string
	}{
		"a user without a password":     {bus.Access{User: "weir"}, "WEIR_BROKERS_PASSWORD_FILE is not"},
		"a password without a user":     {bus.Access{PasswordFile: empty}, "WEIR_BROKERS_USER is not"},
		"no file":                       {bus.Access{User: "weir", PasswordFile: "/nowhere/password"}, "/nowhere/password"},
		"an empty file":                 {bus.Access{User: "weir", PasswordFile: empty}, "holds no password"},
		"a token without its mechanism": {bus.Access{TokenFile: empty}, "WEIR_BROKERS_MECHANISM is not OAUTHBEARER"},
		"a token and a user":            {bus.Access{Mechanism: "OAUTHBEARER", User: "weir", PasswordFile: empty, TokenFile: empty}, "unset one"},
		"the mechanism without a token": {bus.Access{Mechanism: "OAUTHBEARER", TLS: true}, "WEIR_BROKERS_TOKEN_FILE is not set"},
		"a token that the network sees": {bus.Access{Mechanism: "OAUTHBEARER", TokenFile: empty}, "without TLS"},
		"an empty token":                {bus.Access{Mechanism: "OAUTHBEARER", TokenFile: empty, TLS: true}, "holds no token"},
		"a certificate without its key": {bus.Access{CertFile: empty}, "go together"},
		"an empty certificate":          {bus.Access{CertFile: empty, KeyFile: empty}, "WEIR_BROKERS_CERT_FILE"},
		"no authority in the file":      {bus.Access{CAFile: empty}, "(WEIR_BROKERS_CA_FILE) holds no certificate"},
	} {
		if dialer, err := c.access.Dialer(); dialer != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if dialer, err := (bus.Access{}).Dialer(); dialer != nil || err != nil {
		t.Errorf("without a user: %v, %v", dialer, err)
	}
}
