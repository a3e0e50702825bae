package main

import (
	"errors"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
)

// Times are printed in the reader's zone: here that is the same everywhere.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	m.Run()
}

// An error is written as one line, each part once.
func TestOneLine(t *testing.T) {
	setting := errors.New("WEIR_DRAIN is -1s:\n\tuse 45s")
	if got, want := oneLine(errors.Join(setting, errors.New("no disk"))), "WEIR_DRAIN is -1s:; use 45s; no disk"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	refused := errors.New("WEIR_DRAIN is -1s")
	if got := oneLine(errors.Join(refused, refused, refused)); got != refused.Error() {
		t.Errorf("got %q", got)
	}
}

// Salted passwords leave the machine only over TLS, or if that is allowed.
func TestPasswordsAreSentWhereNobodyReads(t *testing.T) {
	for _, c := range []struct {
		name    string
		command aclsCommand
		sent    bool
	}{
		{"over TLS", aclsCommand{Passwords: "secrets", Brokers: []string{"kafka:9093"}, BrokerAccess: bus.Access{TLS: true}}, true},
		{"by its authority", aclsCommand{Passwords: "secrets", Brokers: []string{"kafka:9093"}, BrokerAccess: bus.Access{CAFile: "ca.pem"}}, true},
		{"on this machine", aclsCommand{Passwords: "secrets", Brokers: []string{"127.0.0.1:9094", "[::1]:9094", "localhost:9094"}}, true},
		{"allowed", aclsCommand{Passwords: "secrets", Brokers: []string{"kafka:9092"}, PlaintextPasswords: true}, true},
		{"rights alone", aclsCommand{Brokers: []string{"kafka:9092"}}, true},
		{"one elsewhere", aclsCommand{Passwords: "secrets", Brokers: []string{"127.0.0.1:9094", "kafka:9092"}}, false},
		{"a name like it", aclsCommand{Passwords: "secrets", Brokers: []string{"localhost.example:9092"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.command.refuseReaders(); (err == nil) != c.sent {
				t.Errorf("got %v", err)
			}
		})
	}
}
