package main

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestSlowest(t *testing.T) {
	output := strings.Join([]string{
		"ok  \tweir/quick\t0.012s",
		"ok  \tweir/cached\t(cached)",
		"--- FAIL: TestOf (3.00s)",
		"FAIL\tweir/slow\t61.500s",
		"?   \tweir/none\t[no test files]",
		"ok  \tweir/middle\t2.000s [no tests to run]",
		"ok  \tweir/middle\t1.000s\tcoverage: 5% of statements",
		"FAIL\tweir/broken [build failed]",
		"FAIL",
	}, "\n") + "\n"
	s := &slowest{took: map[string]time.Duration{}}
	if _, err := io.Copy(s, iotest.OneByteReader(strings.NewReader(output))); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	s.print(&printed, 2)
	if want := "slowest packages:\n    61.5 s  weir/slow\n     3.0 s  weir/middle\n"; printed.String() != want {
		t.Errorf("printed %q, want %q", printed.String(), want)
	}
	printed.Reset()
	if s.print(&printed, 0); printed.String() != "" {
		t.Errorf("asked for none, printed %q", printed.String())
	}
}
