package grouping

import "testing"

// Errors whose types differ by an id alone are the same, with and without a trace.
func TestTypesWithIDsAreOneGroup(t *testing.T) {
	var g Grouper
	for _, stack := range [][]string{nil, {"at com.acme.A.b(A.java:1)"}, {"at com.acme.A.b(A.java:1)", "Caused by: x.Cause_9f86d081: y", "at com.acme.C.d(C.java:1)"}} {
		one := g.Fingerprint(Error{Type: "Error_8f3a9c", Message: "cannot pay", StackTrace: stack}).Deciding()
		two := g.Fingerprint(Error{Type: "Error_1b22c4", Message: "cannot pay", StackTrace: stack})
		if two.Deciding() != one {
			t.Errorf("%+v and %+v", one, two)
		}
		if why := two.Explain(); len(stack) < 3 && why.Parts[0] != (Part{"type", "Error_*"}) {
			t.Errorf("why %+v", why)
		}
	}
}

// identifiedVariants are errors with ids in their types.
var identifiedVariants = []variants{
	{name: "id without a trace", base: Error{Type: "Error_8f3a9c", Message: "cannot pay"}},
	{name: "id", base: thrown("Timeout<1234>", "cannot pay", "\tat com.acme.A.b(A.java:1)")},
	{name: "id of a cause", base: thrown("com.acme.Failed", "cannot pay", "\tat com.acme.A.b(A.java:1)\nCaused by: x.Job12345Failed: y\n\tat com.acme.C.d(C.java:1)")},
}
