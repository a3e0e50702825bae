package grouping

import (
	"strings"
	"testing"
)

// A trace in the message is the trace, with the
// same words, even beside a field of blank pieces.
func TestTraceInMessage(t *testing.T) {
	for _, trace := range []string{
		"Traceback (most recent call last):\n  File \"/app/a.py\", line 3, in load\n    x\nValueError: no such cart",
		"panic: no such cart\n\ngoroutine 1 [running]:\nmain.load(0xc000)\n\t/app/a.go:3 +0x1",
		"java.lang.IllegalStateException: no such cart\n\tat com.acme.Cart.load(Cart.java:3)",
		"Uncaught Error: no such cart\n    at load (/app/a.js:3:1)",
	} {
		var g Grouper
		sent := g.Fingerprint(Error{Message: "no such cart", StackTrace: []string{trace}}).Deciding()
		for what, e := range map[string]Error{
			"the message": {Message: trace}, "an empty piece": {Message: trace, StackTrace: []string{""}}, "blank pieces": {Message: trace, StackTrace: []string{" ", "\n"}},
		} {
			if g.Fingerprint(e).Deciding() != sent {
				t.Errorf("%s moves %q: %+v", what, strings.Split(trace, "\n")[0], g.Fingerprint(e).Explain())
			}
		}
	}
}
