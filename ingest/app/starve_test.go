package app_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

// emptyBlock is an empty deflate block: it continues a stream without content.
var emptyBlock = []byte{0, 0, 0, 0xff, 0xff}

// neverEnding sends a gzip body that inflates to size bytes of white
// space and continues with empty blocks forever.
func (p *replica) neverEnding(ctx context.Context, key string, size int) {
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/logs", reader)
	if err != nil {
		p.t.Error(err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Content-Encoding", "gzip")
	request.Header.Set("X-Api-Key", key)
	go func() {
		var packed bytes.Buffer
		inflates := gzip.NewWriter(&packed)
		_, _ = inflates.Write(bytes.Repeat([]byte(" "), size))
		_ = inflates.Flush()
		_, err := writer.Write(packed.Bytes())
		for err == nil && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond) // the pace of a client that is slow
			_, err = writer.Write(emptyBlock)
		}
		_ = writer.CloseWithError(context.Canceled)
	}()
	if response, err := p.client.Do(request); err == nil {
		_ = response.Body.Close()
	}
	_ = reader.Close()
}

// gauge adds up the metrics of a name.
func gauge(registry *telemetry.Registry, name string) (sum int) {
	recorder := httptest.NewRecorder()
	registry.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(recorder.Body.String()) {
		if value, found := strings.CutPrefix(line, name+"{"); found {
			number, _ := strconv.ParseFloat(strings.TrimSpace(value[strings.LastIndexByte(value, ' '):]), 64)
			sum += int(number)
		}
	}
	return sum
}

// Endless bodies of one organization block nobody else's requests, even
// while they hold as much memory as they can.
func TestNeverEndingBodiesStarveNobody(t *testing.T) {
	r := newRig(t)
	r.account("org_noisy", nil)
	r.account("org_quiet", nil)
	noisy, quiet := r.key("org_noisy", "prj_noisy", nil), r.key("org_quiet", "prj_quiet", nil)
	registry := telemetry.New()
	p := r.start(func(c *app.Config) { c.MaxBodyBytes, c.InFlightBytes, c.Telemetry.Registry = 8<<20, 32<<20, registry })
	ctx, stop := context.WithCancel(t.Context())
	var attacks sync.WaitGroup
	defer attacks.Wait()
	defer stop()
	sizes := []int{8 << 20, 8 << 20, 8 << 20} // and what fills the gaps between them
	for size := 4 << 20; size >= 64<<10; size /= 2 {
		sizes = append(sizes, size, size)
	}
	var ended atomic.Int64 // some are refused: their organization's memory is full
	for i, size := range sizes {
		attacks.Go(func() {
			p.neverEnding(ctx, noisy, size-1000)
			ended.Add(1)
		})
		testenv.Eventually(t, waitTimeout, func() error {
			if n := gauge(registry, "weir_ingest_in_flight_bodies"); n+int(ended.Load()) <= i && n < 4 {
				return fmt.Errorf("%d of %d bodies are under way", n, i+1)
			}
			return nil
		})
	}
	bodies := map[string][]byte{
		"tiny":  bodyOf(entry("m")),
		"small": bodyOf(strings.Split(strings.Repeat(entry(strings.Repeat("x", 900))+"|", 200), "|")[:200]...),
	}
	bodies["packed"] = compressed(t, bodies["small"], gzipped)
	for i := range 120 {
		for name, body := range bodies {
			headers := []string{"Content-Encoding", map[bool]string{true: "gzip", false: "identity"}[name == "packed"]}
			if got := p.post(quiet, body, headers...); got.status != http.StatusOK {
				t.Fatalf("post %d, %s: %d %s", i, name, got.status, got.text)
			}
		}
		time.Sleep(10 * time.Millisecond) // the pace of a client that is quiet
	}
}
