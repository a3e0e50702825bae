package process

import (
	"errors"
	"testing"
)

func TestAnEndIsOneLine(t *testing.T) {
	tried := errors.New("failed to connect to `user=u`:\n\t127.0.0.1:1: refused\n\t[::1]:1: refused; Start PostgreSQL.")
	for want, err := range map[string]error{
		"weir-ledger: failed to connect to `user=u`: 127.0.0.1:1: refused [::1]:1: refused; Start PostgreSQL.": tried,
		"weir-ledger: WEIR_A is 1. WEIR_B is 2.": errors.Join(errors.New("WEIR_A is 1."), errors.New("WEIR_B is 2.")),
	} {
		if got := inOneLine("weir-ledger", err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
