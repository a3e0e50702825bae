package grouping

import (
	"fmt"
	"regexp"
	"testing"
)

// eleven is an error with as many frames as half of all errors have.
func eleven() Error {
	e := Error{Type: "com.acme.PaymentFailed", Message: "cannot pay order 4711", StackTrace: []string{"com.acme.PaymentFailed: cannot pay order 4711"}}
	for i := range 11 {
		e.StackTrace = append(e.StackTrace, fmt.Sprintf("\tat com.acme.shop.pay.Gateway%c.charge(Gateway.java:%d)", 'A'+i, 100+i))
	}
	return e
}

func BenchmarkMedian(b *testing.B) {
	e := eleven()
	var g Grouper
	b.ReportAllocs()
	for b.Loop() {
		g.Fingerprint(e)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "errors/s")
}

// What it costs to take the same lines apart, and nothing more, with package regexp.
func BenchmarkMedianRegexp(b *testing.B) {
	frame := regexp.MustCompile(`^\s*at (?:[\w.@]+/)?([\w.$]+)\.([\w$<>]+)\(([^:)]+)(?::(\d+))?\)`)
	e := eleven()
	b.ReportAllocs()
	for b.Loop() {
		for _, line := range e.StackTrace {
			frame.FindStringSubmatch(line)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "errors/s")
}
