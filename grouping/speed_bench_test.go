package grouping

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"
)

// eleven is an error with as many frames as half of all errors have.
func eleven() Error { return deep(11) }

// deep is an error with so many frames.
func deep(frames int) Error {
	e := Error{Type: "com.acme.PaymentFailed", Message: "cannot pay order 4711", StackTrace: []string{"com.acme.PaymentFailed: cannot pay order 4711"}}
	for i := range frames {
		e.StackTrace = append(e.StackTrace, fmt.Sprintf("\tat com.acme.shop.pay.Gateway%s.charge(Gateway.java:%d)", suffix(i), 100+i))
	}
	return e
}

// suffix names a class by letters: digits would be a counter's.
func suffix(i int) string { return string([]rune{rune('A' + i/26), rune('a' + i%26)}) }

// How long single errors take, of which half have 11 frames, a
// tenth have 35 and a hundredth 100.
func BenchmarkPercentiles(b *testing.B) {
	var g Grouper
	var all []Error
	for i := range 100 {
		switch {
		case i == 0:
			all = append(all, deep(100))
		case i < 10:
			all = append(all, deep(35))
		default:
			all = append(all, eleven())
		}
	}
	took := make([]time.Duration, 0, 1<<20)
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		g.Fingerprint(all[i%len(all)])
		if len(took) < cap(took) {
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
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

// How much longer the regular expression below takes than
// Fingerprint, by turns, so that a busy machine slows both.
func BenchmarkAgainstRegexp(b *testing.B) {
	e := eleven()
	var g Grouper
	var ours, theirs time.Duration
	for b.Loop() {
		begun := time.Now()
		g.Fingerprint(e)
		fingerprinted := time.Now()
		matchFrames(e)
		ours, theirs = ours+fingerprinted.Sub(begun), theirs+time.Since(fingerprinted)
	}
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "times")
}

// What it costs to take the same lines apart, and nothing more,
// with package regexp.
func BenchmarkMedianRegexp(b *testing.B) {
	e := eleven()
	b.ReportAllocs()
	for b.Loop() {
		matchFrames(e)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "errors/s")
}

var frameExpression = regexp.MustCompile(`^\s*at (?:[\w.@]+/)?([\w.$]+)\.([\w$<>]+)\(([^:)]+)(?::(\d+))?\)`)

func matchFrames(e Error) {
	for _, line := range e.StackTrace {
		frameExpression.FindStringSubmatch(line)
	}
}
