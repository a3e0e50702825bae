package main

import (
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// Flags that were renamed have their former names until the next version.
func TestFormerFlags(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		isSet     func(commands) bool
	}{
		{[]string{"doctor", "--patience=7s"}, func(c commands) bool { return c.Doctor.CheckTimeout == 7*time.Second }},
		{[]string{"acls", "--passwords-in-clear"}, func(c commands) bool { return c.ACLs.PlaintextPasswords }},
	} {
		var chosen commands
		parser, err := kong.New(&chosen)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(c.arguments); err != nil || !c.isSet(chosen) {
			t.Errorf("%q: %v, set %t", c.arguments, err, c.isSet(chosen))
		}
	}
}
