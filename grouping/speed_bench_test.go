package grouping

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkErrors measures fingerprints by processor time, so that a busy
// machine changes little: of real errors of each language, and of those
// in the file that WEIR_ERRORS names, one a line, as the program
// benchmark reads them. Of each the strictest hash and the deciding
// one are made. Nothing is allocated.
//
//	WEIR_ERRORS=errors.jsonl.gz go test -run - -bench Errors .
func BenchmarkErrors(b *testing.B) {
	all := located()
	for _, language := range slices.Sorted(maps.Keys(all)) {
		var errors []Error
		for _, k := range all[language] {
			errors = append(errors, k.base)
		}
		b.Run(string(language), func(b *testing.B) { fingerprintAll(b, errors) })
	}
	if path := os.Getenv("WEIR_ERRORS"); path != "" {
		b.Run("labelled", func(b *testing.B) { fingerprintAll(b, readErrors(b, path)) })
	}
}

// fingerprintAll fingerprints one error after the other.
func fingerprintAll(b *testing.B, errors []Error) {
	bytes := 0
	for _, e := range errors {
		for _, line := range e.StackTrace {
			bytes += len(line)
		}
	}
	var g Grouper
	b.SetBytes(int64(bytes / len(errors)))
	b.ReportAllocs()
	begun, n := processorTime(b), 0
	for b.Loop() {
		g.Fingerprint(errors[n%len(errors)]).Deciding()
		n++
	}
	b.ReportMetric(float64(n)/(processorTime(b)-begun).Seconds(), "errors/cpu-s")
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func readErrors(b *testing.B, path string) (errors []Error) {
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	var text io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			b.Fatal(err)
		}
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct {
			Type, Message string
			StackTrace    []string `json:"stack_trace"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			b.Fatal(err)
		}
		errors = append(errors, Error{Type: e.Type, Message: e.Message, StackTrace: e.StackTrace})
	}
	if err := lines.Err(); err != nil {
		b.Fatal(err)
	}
	return errors
}
