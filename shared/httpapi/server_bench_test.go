package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"syscall"
	"testing"
)

// BenchmarkPost posts 48 KB over one connection, with both versions of
// HTTP: the processor time of both sides of a request.
func BenchmarkPost(b *testing.B) {
	for _, version := range []string{"HTTP1", "HTTP2"} {
		b.Run(version, func(b *testing.B) {
			address, trust := start(b, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "ok")
			})})
			transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: version == "HTTP2"}
			defer transport.CloseIdleConnections()
			client, body := &http.Client{Transport: transport}, bytes.Repeat([]byte("x"), 48<<10)
			b.ReportAllocs()
			begun := processorTime(b)
			for b.Loop() {
				response, err := client.Post("https://"+address+"/", "application/json", bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			b.ReportMetric(float64(processorTime(b)-begun)/float64(b.N), "cpu-ns/op")
		})
	}
}

func processorTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
