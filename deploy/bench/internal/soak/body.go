package soak

import (
	"bytes"
	"fmt"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
)

// entries of a post.
const entries = 40

// body of a post: mostly routine entries, some late ones, some daily
// errors, and some new kinds of errors.
func body(tenant, day, post int, now time.Time) []byte {
	var b bytes.Buffer
	b.WriteString(`{"logs":[`)
	for n := range entries {
		if n > 0 {
			b.WriteByte(',')
		}
		at := now.Add(-time.Duration(n) * time.Second)
		switch {
		case n < kindsOfPost:
			b.WriteString(failure(at, kindOf(tenant, day, post, n)))
		case n%10 == 5:
			b.WriteString(failure(at, usual[(tenant+n)%len(usual)]))
		case n%10 == 6:
			b.WriteString(routine(at.Add(-3*24*time.Hour), tenant, n)) // came late
		default:
			b.WriteString(routine(at, tenant, n))
		}
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func routine(at time.Time, tenant, n int) string {
	return fmt.Sprintf(`{"timestamp":%q,"level":"info","message":"cart %d of shop %d was opened"}`, stamp(at), n, tenant)
}

func failure(at time.Time, kind string) string {
	return fmt.Sprintf(`{"timestamp":%q,"level":"error","message":"checkout failed",
		"error":{"type":%q,"message":"it broke","stack_trace":["at com.acme.shop.%s.total(Cart.java:41)"]}}`, stamp(at), kind, kind)
}

func stamp(at time.Time) string { return at.UTC().Format(subject.StampForm) }

// usual are the errors of every day.
var usual = []string{"TimeoutError", "CartError", "PaymentDeclined"}

// kindsOfPost is the number of new kinds.
const kindsOfPost = 3

// kindOf returns a kind of error that only this post has, for years.
func kindOf(tenant, day, post, number int) string {
	return subject.Letters(int64(((day*8+tenant)*4+post)*kindsOfPost+number)) + "Error"
}
