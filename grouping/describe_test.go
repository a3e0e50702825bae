package grouping

import (
	"testing"

	"github.com/weirlog/weir/grouping/trace"
)

// What people see: a title and a culprit of the sender's own code.
func TestDescribe(t *testing.T) {
	for _, test := range []struct {
		e                   Error
		title, typ, culprit string
	}{
		{javaVariants[0].base, "com.acme.PaymentException: Payment declined for order 4711", "com.acme.PaymentException", "com.acme.pay.Gateway.lambda$charge"},
		{javaVariants[1].base, "java.lang.RuntimeException: request 12 failed", "java.lang.RuntimeException", "com.acme.db.Users.find"},
		{javascriptVariants[0].base, "Error: connect ECONNREFUSED 10.0.0.1:5432", "Error", "Pool.acquire (pool.js)"},
		{pythonVariants[0].base, "ValueError: invalid literal for int() with base 10: 'abc'", "ValueError", "parse (money.py)"},
		{goVariants[0].base, "runtime.boundsError: index out of range [5] with length 3", "runtime.boundsError", "github.com/acme/shop/cart.Cart.Item"},
		{dotnetVariants[1].base, "System.AggregateException: One or more errors occurred.", "System.AggregateException", "Acme.Db.Query"},
		{Error{StackTrace: []string{"TypeError: no", "    at f (/a/b.js:1:2)", "    at g (/a/b.js:1:2)"}}, "TypeError: no", "TypeError", "f (b.js)"},
		{Error{StackTrace: []string{`TypeError: bad field msg="x"`, "    at f (/a/b.js:1:2)"}}, `TypeError: bad field msg="x"`, "TypeError", "f (b.js)"},
		{Error{StackTrace: []string{"KeyError: key not found: #<Shop::Cart: 7>", "/a/b.rb:13:in `f'"}}, "KeyError: key not found: #<Shop::Cart: 7>", "KeyError", "f (b.rb)"},
		{Error{StackTrace: []string{`a.CutException: Exception in thread "ma`, "\tat a.B.c(B.java:1)"}}, `a.CutException: Exception in thread "ma`, "a.CutException", "a.B.c"},
		{Error{Message: "first\nsecond"}, "first", "", ""},
		{Error{}, "Error", "", ""},
	} {
		var g Grouper
		if d := g.Fingerprint(test.e).Describe(); d.Title != test.title || d.Type != test.typ || d.Culprit != test.culprit {
			t.Errorf("got %q, %q, %q; want %q, %q, %q", d.Title, d.Type, d.Culprit, test.title, test.typ, test.culprit)
		}
	}
}

// The cost of a new kind of error beyond its hashes: description and reason.
func BenchmarkDescribe(b *testing.B) {
	e := javaVariants[0].base
	for len(e.StackTrace) < 16 {
		e.StackTrace = append(e.StackTrace, javaVariants[0].base.StackTrace...)
	}
	var g Grouper
	f := g.Fingerprint(e)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = f.Describe(), f.Explain()
	}
}

// Each frame that is not own code says why.
func TestWhyLibrary(t *testing.T) {
	e := thrown("E", "no", `
	at com.acme.Cart.total(Cart.java:1)
	at org.vendor.Client.send(Client.java:1)
	at java.util.ArrayList.forEach(ArrayList.java:1)`)
	e.Learned.Libraries = Libraries{"org.vendor": true}
	node := thrown("Error", "no", `
    at total (/srv/shop/cart.js:3:5)
    at next (/srv/shop/node_modules/express/lib/router/route.js:144:13)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)`)
	for want, e := range map[[3]trace.Reason]Error{{"", trace.ByErrors, trace.ByName}: e, {"", trace.ByPath, trace.ByName}: node} {
		var g Grouper
		var got [3]trace.Reason
		for i, f := range g.Fingerprint(e).Describe().Exceptions[0].Frames {
			got[i] = f.Library
		}
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
