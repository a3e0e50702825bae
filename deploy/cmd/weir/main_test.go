package main

import (
	"errors"
	"testing"
)

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
