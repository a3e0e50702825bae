package app_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

// What BenchmarkTail sends: 25,000 entries of 250 bytes a second.
const (
	benchBatch   = 100
	benchBatches = 250 // a second
	benchSeconds = 20
)

// BenchmarkTail measures how long after it was sent an entry is in a tail, for
// one that shows all and one that shows every hundredth, and for as many with
// queries of their own as an organization may have.
func BenchmarkTail(b *testing.B) {
	for _, queries := range []int{0, 14} {
		b.Run(fmt.Sprintf("%d_more_queries", queries), func(b *testing.B) {
			for b.Loop() {
				benchTail(b, queries)
			}
		})
	}
}

func benchTail(b *testing.B, queries int) {
	r := newRig(b)
	r.account("org_a", func(a *contract.Account) { a.RequestsPerMinute = 1_000_000 })
	key := r.key("org_a", "prj_a", nil)
	p := r.start(nil)
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.roots}, MaxIdleConnsPerHost: 32, ForceAttemptHTTP2: true}}
	p.admits(key)
	var watching sync.WaitGroup
	seen := map[string]*delays{"all": {}, "hundredth": {}}
	for name, query := range map[string]string{"all": "", "hundredth": "?q=chosen"} {
		tail := p.tail(key, query)
		watching.Go(func() { seen[name].watch(b, tail) })
	}
	for i := range queries {
		tail := p.tail(key, fmt.Sprintf("?q=metadata.user.id:%d+-status:>=500", i))
		watching.Go(func() { (&delays{}).watch(b, tail) })
	}
	send(b, p, key)
	p.stop() // which ends the tails
	watching.Wait()
	for name, d := range seen {
		slices.Sort(d.took)
		if len(d.took) == 0 {
			b.Fatalf("%s: nothing came", name)
		}
		b.ReportMetric(float64(len(d.took)), name+"_shown")
		b.ReportMetric(float64(d.skipped), name+"_skipped")
		for _, percent := range []int{50, 99} {
			b.ReportMetric(float64(d.took[len(d.took)*percent/100].Milliseconds()), fmt.Sprintf("%s_p%d_ms", name, percent))
		}
	}
}

// send sends batches at their pace. It does not wait for answers before the next.
func send(b *testing.B, p *replica, key string) {
	b.Helper()
	var sending sync.WaitGroup
	pace := time.NewTicker(time.Second / benchBatches)
	defer pace.Stop()
	for batch := range benchBatches * benchSeconds {
		<-pace.C
		sending.Go(func() {
			request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, p.url+"/v1/logs", bytes.NewReader(benchBody(batch)))
			if err != nil {
				b.Error(err)
				return
			}
			request.Header = http.Header{"X-Api-Key": {key}, "Content-Type": {"application/json"}}
			answer, err := p.client.Do(request)
			if err != nil {
				b.Error(err)
				return
			}
			text, _ := io.ReadAll(answer.Body)
			if answer.Body.Close(); answer.StatusCode != http.StatusOK {
				b.Errorf("%d %s", answer.StatusCode, text)
			}
		})
	}
	sending.Wait()
	time.Sleep(time.Second)
}

func benchBody(batch int) []byte {
	entries := make([]string, benchBatch)
	for i := range entries {
		message := "request answered"
		if i == 0 {
			message = "request chosen"
		}
		entries[i] = fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"%s","metadata":{"user":{"id":%d},"status":200,"path":"/api/v1/orders/%d","trace_id":"%032x"}}`,
			time.Now().UTC().Format(time.RFC3339Nano), message, batch%1000, i, batch*benchBatch+i)
	}
	return []byte(`{"logs":[` + strings.Join(entries, ",") + `]}`)
}

// delays are how long entries took to be shown.
type delays struct {
	took    []time.Duration
	skipped int
}

func (d *delays) watch(b *testing.B, tail *tail) {
	for {
		event, data := tail.next()
		now := time.Now()
		switch event {
		case "entry":
			_, rest, _ := strings.Cut(data, `"timestamp":"`)
			sent, err := time.Parse(time.RFC3339Nano, rest[:strings.IndexByte(rest, '"')])
			if err != nil {
				b.Error(err)
			}
			d.took = append(d.took, now.Sub(sent))
		case "skipped":
			var skipped struct{ Entries int }
			_ = json.Unmarshal([]byte(data), &skipped)
			d.skipped += skipped.Entries
		case "end":
			return
		}
	}
}
