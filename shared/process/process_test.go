package process

import (
	"errors"
	"testing"
)

func TestLastLine(t *testing.T) {
	tried := errors.New("failed to connect to `user=u`:\n\t127.0.0.1:1: refused\n\t[::1]:1: refused; Start PostgreSQL.")
	if got, want := lastLine("weir-ledger", tried), "weir-ledger: failed to connect to `user=u`: 127.0.0.1:1: refused [::1]:1: refused; Start PostgreSQL."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
