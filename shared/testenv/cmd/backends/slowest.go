package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// slowest reads the output of `go test`, and adds up the time of each package.
type slowest struct {
	line []byte // begun and not ended yet
	took map[string]time.Duration
}

func (s *slowest) Write(p []byte) (int, error) {
	s.line = append(s.line, p...)
	for {
		line, rest, ended := bytes.Cut(s.line, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		s.note(string(line))
		s.line = rest
	}
}

// note reads "ok" or FAIL, a package and its time, separated by tabs.
// Cached results took no time.
func (s *slowest) note(line string) {
	columns := strings.Split(line, "\t")
	if len(columns) < 3 || strings.TrimSpace(columns[0]) != "ok" && columns[0] != "FAIL" {
		return
	}
	text, _, _ := strings.Cut(columns[2], " ") // coverage or a remark may follow
	if took, err := time.ParseDuration(text); err == nil {
		s.took[columns[1]] += took
	}
}

// print lists the count slowest packages.
func (s *slowest) print(out io.Writer, count int) {
	names := slices.SortedFunc(maps.Keys(s.took), func(a, b string) int { return cmp.Compare(s.took[b], s.took[a]) })
	names = names[:min(count, len(names))]
	if len(names) == 0 {
		return
	}
	fmt.Fprintln(out, "slowest packages:")
	for _, name := range names {
		fmt.Fprintf(out, "%8.1f s  %s\n", s.took[name].Seconds(), name)
	}
}
