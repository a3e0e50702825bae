package grouping

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping/trace"
)

// message is an error of one place, with a message.
func withMessage(message string) Error {
	return thrown("NotFound", message, "\tat com.acme.Users.load(Users.java:5)")
}

// learnFrom learns from errors as from the groups that each creates.
func learnFrom(values Values, errors ...Error) {
	var g Grouper
	families := map[Hash][][][]byte{} // bounded by the errors
	for _, e := range errors {
		f := g.Fingerprint(e)
		d := f.Describe()
		families[f.Similar()] = append(families[f.Similar()], new(Grouper).Message(d.Language, d.Exceptions))
	}
	for family, messages := range families {
		values.Learn(family, messages)
	}
}

// people are errors with a name, and a place, that vary.
func people(n int, entry func(message string) Error) (errors []Error) {
	for i := range n {
		errors = append(errors, entry(fmt.Sprintf("user %s from %s not found", suffix(i), suffix(100+i))))
	}
	return errors
}

// Words that vary at one place of a message become values: names that the
// project has not had before join the group. Until ten have been seen, each
// is a group; words elsewhere go on telling errors apart.
func TestValuesAreLearned(t *testing.T) {
	for name, entry := range map[string]func(string) Error{
		"beside a trace": withMessage, "alone": func(message string) Error { return Error{Type: "NotFound", Message: message} },
	} {
		values := Values{}
		learnFrom(values, people(variety-1, entry)...)
		if len(values) > 0 {
			t.Fatalf("%s: %d values of %d messages", name, len(values), variety-1)
		}
		learnFrom(values, people(variety, entry)...)
		if len(values) != 2 {
			t.Fatalf("%s: %d values of a name and a place", name, len(values))
		}
		decide := func(message string) Hash {
			e := entry(message)
			e.Learned.Values = values
			return new(Grouper).Fingerprint(e).Deciding().Hash
		}
		one := decide("user alice from berlin not found")
		if decide("user bob from paris not found") != one {
			t.Errorf("%s: a new name is a new group", name)
		}
		for _, other := range []string{"user alice from berlin not allowed", "account alice from berlin not found", "user alice is in berlin not found"} {
			if decide(other) == one {
				t.Errorf("%s: %q joins", name, other)
			}
		}
	}
}

// Few different words at one place are parts of a program.
func TestPartsAreNoValues(t *testing.T) {
	values := Values{}
	var errors []Error
	for _, part := range []string{"kafka", "redis", "postgres", "smtp", "ldap", "search"} {
		errors = append(errors, withMessage(part+": broker down"))
	}
	learnFrom(values, errors...)
	if len(values) > 0 {
		t.Errorf("%d values", len(values))
	}
}

// Unrelated messages of one length teach nothing, and codes stay codes.
func TestUnrelatedMessagesTeachNothing(t *testing.T) {
	values := Values{}
	var errors []Error
	for _, message := range strings.Split(`cannot open cart database
payment gateway refused card
disk is almost full
backup job was skipped
root certificate expires tomorrow
license server not reachable
queue consumer fell behind
search index looks corrupt
mail relay rejected sender
cache warmup took long
session store lost quorum
image resize ran dry`, "\n") {
		errors = append(errors, Error{Message: message})
	}
	for _, status := range strings.Fields("400 401 403 404 409 422 429 500 502 503 504") {
		errors = append(errors, withMessage("server answered "+status+" to request"))
	}
	learnFrom(values, errors...)
	if len(values) > 0 {
		t.Errorf("%d values", len(values))
	}
}

// An error's hashes before each value was learned
// find the group that it had then.
func TestFormerValues(t *testing.T) {
	values := Values{}
	var g Grouper
	e := withMessage("user alice from berlin not found")
	cold := g.Fingerprint(e).Deciding().Hash
	learnFrom(values, people(variety, withMessage)...)
	e.Learned.Values = values
	f := g.Fingerprint(e)
	now, former := f.Deciding().Hash, f.Former()
	if len(former) != 2 || former[0] <= former[1] || now == cold {
		t.Fatalf("ordinals %v", former)
	}
	hashes := map[Hash]bool{}
	for _, e.Learned.Before = range former {
		hashes[g.Fingerprint(e).Deciding().Hash] = true
	}
	if len(hashes) != 2 || !hashes[cold] || hashes[now] {
		t.Errorf("former hashes %v, cold %v, now %v", hashes, cold, now)
	}
}

// However many messages vary, a project has a bounded number of values.
func TestValuesAreBounded(t *testing.T) {
	values := Values{}
	for place := range maxValues + 10 {
		var messages [][][]byte
		for i := range variety {
			messages = append(messages, [][]byte{[]byte(" " + suffix(place%676) + suffix(place/676)), []byte(" " + suffix(i))})
		}
		values.Learn(Hash{}, messages)
	}
	if len(values) != maxValues {
		t.Errorf("%d values", len(values))
	}
}

// A family is examined again when it has doubled.
func TestVaried(t *testing.T) {
	for _, c := range []struct {
		groups, created int
		want            bool
	}{{9, 9, false}, {10, 1, true}, {11, 1, false}, {19, 9, false}, {20, 1, true}, {25, 10, true}, {40, 40, true}, {320, 1, true}, {321, 1, false}, {640, 2, false}} {
		if got := Varied(c.groups, c.created); got != c.want {
			t.Errorf("%d groups, %d new: %v", c.groups, c.created, got)
		}
	}
}

var messageTexts = map[string]string{
	"user alice not found":                               " user alice not found",
	"GET https://a.example/v1 answered 404":              " get * answered 404",
	"request failed with status code 404":                " request failed with status code 404",
	"HTTP 503 Service Unavailable":                       " http 503 service unavailable",
	"exit status 137":                                    " exit status 137",
	"process exited with code -11":                       " process exited with code -11",
	"[Errno 13] Permission denied: '/etc/x'":             " errno 13 permission denied *",
	"cannot open /etc/x: too many files (os error 24)":   " cannot open * too many files os error 24",
	"ERROR: duplicate key (SQLSTATE 23505)":              " error duplicate key sqlstate 23505",
	"relation missing (SQLSTATE 42P01)":                  " relation missing sqlstate 42P01",
	"unhandled exception 0xC0000005 at 0x00007ff6a1b2c3": " unhandled exception 0xC0000005 at *",
	"ORA-00942: table or view does not exist":            " ORA-00942 table or view does not exist",
	"E11000 duplicate key error collection":              " E11000 duplicate key error collection",
	"order 4711 of alice@example.com has no address":     " order * of * has no address",
	"java.lang.String cannot be cast to com.acme.Cart":   " java.lang.string cannot be cast to com.acme.cart",
	"status=503 host=web-7 id=9":                         " status=503 host=* id=*",
	"HTTP/1.1 503 from upstream":                         " * 503 from upstream",
	"SQLSTATE[23000]: query failed":                      " sqlstate[23000 query failed",
	"exited with code -1073741819":                       " exited with code -1073741819",
	"connect failed code=ECONNREFUSED":                   " connect failed code=ECONNREFUSED",
	"invalid promo code 48213":                           " invalid promo code *",
	"ORD-20391: payment declined":                        " * payment declined",
	"cannot create directory ‘alice’: denied":            " cannot create directory * denied",
	"об'єкт вже існує, ім'я відсутнє":                    " об'єкт вже існує ім'я відсутнє",
	"no such table :carts":                               " no such table *",
}

// Visible values go, and codes that tell errors apart stay.
func TestMessages(t *testing.T) {
	var m trace.Message
	for message, want := range messageTexts {
		if m.Read(message, trace.MaxAlone); string(m.AppendAll(nil)) != want {
			t.Errorf("%q: %q, want %q", message, m.AppendAll(nil), want)
		}
	}
}
