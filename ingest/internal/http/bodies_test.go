package http

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// addOrganization adds an organization and returns one of its keys.
func addOrganization(tb testing.TB, in *Intake, name string) string {
	tb.Helper()
	key := fmt.Sprintf("weir_%048x", []byte(name))
	value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_" + name, Organization: name, Project: "prj_" + name, Environment: "prod", State: contract.CredentialActive})
	if err != nil || in.Service.Credentials.Apply(contract.CredentialKey(key), value) != nil {
		tb.Fatal(err)
	}
	in.Service.Gate.Apply(name, 1_000_000, ingest.Account{Limit: 1 << 50, NextLimit: 1 << 50, Period: calendar.PeriodAt(start, 1), AnchorDay: 1})
	return key
}

// packed is text as gzip without the stream's end.
func packed(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text)
	_ = w.Flush()
	return out.Bytes()
}

func zipped(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text)
	_ = w.Close()
	return out.Bytes()
}

// A drip is a body that sends a piece each second, the last one
// forever. It fails the test if it is read too long.
type drip struct {
	t      *testing.T
	now    *time.Time
	pieces [][]byte
	reads  int
}

func (d *drip) Read(p []byte) (int, error) {
	if d.reads++; d.reads > 10_000 {
		d.t.Error("the body is read without end")
		return 0, io.ErrUnexpectedEOF
	}
	*d.now = d.now.Add(time.Second)
	n := copy(p, d.pieces[0])
	if d.pieces[0] = d.pieces[0][n:]; len(d.pieces) > 1 && len(d.pieces[0]) == 0 {
		d.pieces = d.pieces[1:]
	} else if len(d.pieces) == 1 {
		d.pieces[0] = append(d.pieces[0], p[:n]...)
	}
	return n, nil
}

// A body without useful bytes ends within its idle time, however it is
// kept alive.
func TestBodiesThatBringNothingEnd(t *testing.T) {
	white := packed(bytes.Repeat([]byte(" "), 2<<20))
	for name, c := range map[string]struct {
		encoding string
		pieces   [][]byte
	}{
		"a byte a second":             {"identity", [][]byte{[]byte("{")}},
		"white space":                 {"identity", [][]byte{bytes.Repeat([]byte(" "), 100_000)}},
		"empty deflate blocks":        {"gzip", [][]byte{white, {0, 0, 0, 0xff, 0xff}}},
		"packed white space":          {"gzip", [][]byte{white, bytes.TrimPrefix(packed(bytes.Repeat([]byte(" "), 100_000)), white[:10])}},
		"empty gzip members":          {"gzip", [][]byte{zipped(nil)}},
		"skippable frames":            {"zstd", [][]byte{append([]byte{0x50, 0x2a, 0x4d, 0x18, 0x08, 0, 0, 0}, make([]byte, 8)...)}},
		"empty blocks of zstd":        {"zstd", [][]byte{{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58}, {0, 0, 0}}},
		"bare deflate's empty blocks": {"deflate", [][]byte{{0, 0, 0, 0xff, 0xff}}},
	} {
		t.Run(name, func(t *testing.T) {
			in, now := newIntake(t, &memoryLog{}, plenty), start
			in.Bodies = testBodies(189<<20, 128<<20, func() time.Time { return now })
			w := serve(in, newPost(&drip{t: t, now: &now, pieces: c.pieces}, "Content-Encoding", c.encoding))
			if w.Code != 400 || !strings.Contains(w.Body.String(), "incomplete_body") {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if took := now.Sub(start); took > 3*idleTime {
				t.Errorf("it took %s", took)
			}
			if use := in.Bodies.Use(); use != (BodyUse{Slow: 1}) {
				t.Errorf("%+v", use)
			}
		})
	}
}

// A slow and steady body is read whole, and the service's own delays do
// not count.
func TestSlowBodiesPass(t *testing.T) {
	p := newPace(start)
	now := start
	for range 30 { // a small body at twice the least pace
		now = now.Add(time.Second)
		if p.left(now) <= 0 {
			t.Fatalf("it ends after %s", now.Sub(start))
		}
		p.received(now, 2*minPace)
	}
	p.pause(time.Hour)
	if now = now.Add(time.Hour + idleTime - 1); p.left(now) <= 0 {
		t.Error("it ends for having waited")
	}
	if p.left(now.Add(1)) > 0 {
		t.Error("it has more than it may")
	}
	p = newPace(start)
	for now = start; p.left(now) > 0; now = now.Add(time.Second) {
		p.received(now, 1<<20)
	}
	if took := now.Sub(start); took > bodyTime+time.Second {
		t.Errorf("a body may take %s", took)
	}
}

// A body holds the memory of what came, not of its announced length.
func TestBodiesAreCountedAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, &memoryLog{}, plenty)
		reader, writer := io.Pipe()
		r := newPost(reader)
		r.ContentLength = 100 << 20
		done := make(chan int)
		go func() { done <- serve(in, r).Code }()
		for _, c := range []struct{ send, small, large int }{
			{0, 64 << 10, 0}, {1000, 64 << 10, 0}, {300 << 10, 0, 2 << 20}, {3 << 20, 0, 4 << 20}, {10 << 20, 0, 14 << 20},
		} {
			_, _ = writer.Write(bytes.Repeat([]byte("x"), c.send))
			synctest.Wait()
			if use := in.Bodies.Use(); use.SmallBytes > int64(c.small) || use.LargeBytes > int64(c.large) || use.UnderWay != 1 {
				t.Errorf("after %d bytes more: %+v", c.send, use)
			}
		}
		_ = writer.CloseWithError(io.ErrUnexpectedEOF)
		if code := <-done; code != 400 || in.Bodies.Use() != (BodyUse{}) {
			t.Errorf("%d, %+v", code, in.Bodies.Use())
		}
	})
}

// The window of a zstd stream is counted before it is allocated; a
// small body needs none, whatever it declares.
func TestZstdWindowsAreCounted(t *testing.T) {
	noise := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	var stream bytes.Buffer
	w, err := zstd.NewWriter(&stream, zstd.WithWindowSize(zstdWindow), zstd.WithEncoderConcurrency(1))
	testenv.Must(t, err)
	_, _ = w.Write(noise)
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, &memoryLog{}, plenty)
		reader, writer := io.Pipe()
		done := make(chan int)
		go func() { done <- serve(in, newPost(reader, "Content-Encoding", "zstd")).Code }()
		_, _ = writer.Write(stream.Bytes())
		synctest.Wait()
		if use := in.Bodies.Use(); use.LargeBytes < zstdWindow {
			t.Errorf("%+v", use)
		}
		_ = writer.CloseWithError(io.ErrUnexpectedEOF)
		<-done
	})

	log := &memoryLog{hold: make(chan struct{})}
	in := newIntake(t, log, plenty)
	var small bytes.Buffer
	w.Reset(&small)
	_, _ = w.Write(body(100))
	_ = w.Flush() // the frame has no size then
	_ = w.Close()
	done := make(chan int)
	go func() { done <- serve(in, newPost(&small, "Content-Encoding", "zstd")).Code }()
	log.hold <- struct{}{}
	if code := <-done; code != 200 || in.Bodies.large.Held() != 0 {
		t.Errorf("a small body: %d", code)
	}
}

// A zstd body is decompressed the same for any size and frames.
func TestZstdBodies(t *testing.T) {
	in := newIntake(t, &memoryLog{}, plenty)
	for _, size := range []int{1, 100, 5000, 8 << 10, 64 << 10, 65<<10 + 1, 300 << 10, 1 << 20, 1<<20 + 1, 2 << 20, 9 << 20} {
		for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault} {
			for _, char := range []byte{'a', 0} { // 0: noise
				text := bytes.Repeat([]byte{char}, size)
				if char == 0 {
					_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(text)
				}
				w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(level))
				half := size / 2
				wire := append(w.EncodeAll(text[:half], nil), 0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'x', 'y') // a skippable frame between two
				wire = w.EncodeAll(text[half:], wire)
				got, err := in.Bodies.Read(httptest.NewRecorder(), newPost(bytes.NewReader(wire)), Format{encoding: zstdEncoding}, "org_1")
				if err != nil || !bytes.Equal(got.Bytes(), text) {
					t.Fatalf("%d bytes at %s: %v", size, level, err)
				}
				got.Close()
			}
		}
	}
	if use := in.Bodies.Use(); use != (BodyUse{}) {
		t.Errorf("%+v", use)
	}
}

// Waste is charged to its organization, which is refused unread over
// its limit; others are not.
func TestWasteIsCharged(t *testing.T) {
	const perSecond = 1000
	valid, invalid := sampleEntry(1), `{"level":"loud","message":"`+strings.Repeat("x", 50_000)+`"}`
	whole := func(text string) func() *http.Request {
		return func() *http.Request { return newPost(strings.NewReader(text)) }
	}
	many := `{"logs":[` + strings.Repeat(invalid+",", 19) + invalid + `]}`
	for name, c := range map[string]struct {
		request func() *http.Request
		status  int
		wasted  int
		slack   int // what may have come besides
	}{
		"valid":       {whole(`{"logs":[` + valid + `]}`), 200, 0, 0},
		"all invalid": {whole(many), 400, len(many), 0},
		"packed": {func() *http.Request {
			return newPost(bytes.NewReader(zipped([]byte(many))), "Content-Encoding", "gzip")
		}, 400, len(many), 0},
		"partly invalid": {whole(`{"logs":[` + valid + "," + invalid + `]}`), 200, len(invalid), 0},
		"no JSON":        {whole(strings.Repeat("x", 100_000)), 400, 100_000, 0},
		"white space":    {whole(strings.Repeat(" ", 500_000) + `{"logs":[` + valid + `]}`), 200, 500_000 - len(valid) + len(`{"logs":[]}`) - freeWaste, 0},
		"strict": {func() *http.Request {
			return newPost(strings.NewReader(`{"logs":[`+valid+`,{}]}`), "Prefer", "handling=strict")
		}, 400, len(valid) + len(`{"logs":[,{}]}`), 0},
		"too large": {func() *http.Request {
			return newPost(struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 3<<20))})
		}, 400, 2<<20 + 1, 64 << 10},
		"padding": {func() *http.Request {
			return newPost(&endless{piece: zipped(nil)}, "Content-Encoding", "gzip")
		}, 400, perPadding * padding, perPadding * (64 << 10)},
		"what the network broke": {func() *http.Request { return newPost(strings.NewReader(`{"logs":[` + valid + `]}`)) }, 500, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := &memoryLog{}
			if c.status == 500 {
				log.err = io.ErrClosedPipe
			}
			in := newIntake(t, log, plenty)
			other := addOrganization(t, in, "org_2")
			in.Bodies = testBodies(64<<20, 2<<20, in.Service.Clock)
			in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 1, PerSecond: perSecond})
			if w := serve(in, c.request()); w.Code != c.status {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if c.wasted == 0 {
				if w := serve(in, newPost(bytes.NewReader(body(1)))); w.Code == 429 {
					t.Errorf("after it: %d %s", w.Code, w.Body)
				}
				return
			}
			w := serve(in, newPost(untouchable{t}))
			got, _ := strconv.Atoi(w.Header().Get("Retry-After"))
			if want := (c.wasted - 1 + perSecond - 1) / perSecond; w.Code != 429 || !strings.Contains(w.Body.String(), "rate_limited") || got < want || got > want+c.slack/perSecond {
				t.Errorf("after it: %d %s, Retry-After %d, want %d", w.Code, w.Body, got, want)
			}
			if w.Header().Get("X-RateLimit-Scope") == "" {
				t.Error("the refusal has no X-RateLimit-Scope")
			}
			if w := serve(in, newPost(bytes.NewReader(body(1)), "X-Api-Key", other)); w.Code != 200 {
				t.Errorf("another organization: %d %s", w.Code, w.Body)
			}
		})
	}
}

// Waste without a key is charged to the client's network.
func TestWasteOfAnonymousClients(t *testing.T) {
	in := newIntake(t, &memoryLog{}, plenty)
	in.Service.Clients.LimitWaste(fairshare.Rate{Burst: 1000, PerSecond: 100})
	post := func(address string, body io.Reader) *httptest.ResponseRecorder {
		r := newPost(body)
		r.Header.Del("X-Api-Key")
		r.RemoteAddr = address + ":1234"
		return serve(in, r)
	}
	if w := post("192.0.2.1", strings.NewReader(strings.Repeat(" ", 5000)+"{}")); w.Code != 401 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if w := post("192.0.2.1", untouchable{t}); w.Code != 429 || w.Header().Get("Retry-After") != "41" {
		t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := post("192.0.2.2", strings.NewReader(`{"api_key":"`+secret+`","logs":[`+sampleEntry(0)+`]}`)); w.Code != 200 {
		t.Errorf("another network: %d %s", w.Code, w.Body)
	}
}

// An organization at its limit of concurrent requests is refused at
// once, and no other.
func TestRequestsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		in := newIntake(t, log, plenty)
		other := addOrganization(t, in, "org_2")
		in.Bodies = NewBodies(BodyLimits{Bytes: 189 << 20, Max: 1 << 20, Requests: 3, LargeBodies: 1}, in.Service.Clock)
		answers := make(chan int, 4)
		for range 3 {
			go func() { answers <- serve(in, newPost(bytes.NewReader(body(1)))).Code }()
		}
		synctest.Wait()
		if w := serve(in, newPost(untouchable{t})); w.Code != 429 || !strings.Contains(w.Body.String(), "overloaded") || w.Header().Get("Retry-After") == "" {
			t.Errorf("one more: %d %s", w.Code, w.Body)
		}
		go func() { answers <- serve(in, newPost(bytes.NewReader(body(1)), "X-Api-Key", other)).Code }()
		synctest.Wait()
		close(log.hold)
		for range 4 {
			if code := <-answers; code != 200 {
				t.Errorf("got %d", code)
			}
		}
	})
}

// Over real connections: an organization whose bodies stall while
// they hold all memory for large bodies is refused as soon as another
// needs some of it, and that one is served.
func TestLargeBodiesGiveWay(t *testing.T) {
	for _, protocol := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", protocol), func(t *testing.T) {
			in := newIntake(t, &memoryLog{}, plenty)
			quiet := addOrganization(t, in, "org_quiet")
			in.Bodies = testBodies(32<<20, 16<<20, time.Now)
			in.Bodies.large = fairshare.NewLimiter(fairshare.Limits{Capacity: 24 << 20, Leases: 8, Wait: largeWait, Clock: time.Now})
			server := httptest.NewUnstartedServer(httpapi.Handle(in.Post))
			server.EnableHTTP2 = protocol == 2
			server.StartTLS()
			defer server.Close()
			client := server.Client()
			client.Transport.(*http.Transport).TLSClientConfig.NextProtos = map[int][]string{1: {"http/1.1"}, 2: {"h2"}}[protocol]

			ctx, cancel := context.WithCancel(t.Context())
			var attacks sync.WaitGroup
			defer attacks.Wait()
			defer cancel()
			answers := make(chan *http.Response, 2)
			for range 2 {
				attacks.Go(func() { answers <- standStill(ctx, client, server.URL, 11<<20) })
			}
			testenv.Eventually(t, func() error {
				if use := in.Bodies.Use(); use.LargeBytes < 23<<20 {
					return fmt.Errorf("%+v", use)
				}
				return nil
			})
			large := []byte(`{"logs":[` + sampleEntry(0) + `],"x":"` + strings.Repeat("y", 8<<20) + `"}`)
			for _, text := range [][]byte{body(1), large, body(100)} {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, bytes.NewReader(text))
				testenv.Must(t, err)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Api-Key", quiet)
				if response, err := client.Do(r); err != nil || response.StatusCode != 200 {
					t.Fatalf("%d bytes of the quiet one: %v %v", len(text), response, err)
				}
			}
			if answer := <-answers; answer == nil || answer.StatusCode != 429 || answer.Header.Get("Retry-After") == "" {
				t.Errorf("the noisy one got %v", answer)
			}
			if use := in.Bodies.Use(); use.Taken != 1 {
				t.Errorf("%+v", use)
			}
		})
	}
}

// standStill sends a body of size bytes that stalls before its end, and
// returns the answer.
func standStill(ctx context.Context, client *http.Client, url string, size int) *http.Response {
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Canceled) })
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, reader)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", secret)
	go func() { _, _ = writer.Write(bytes.Repeat([]byte("x"), size)) }()
	response, err := client.Do(r)
	_ = reader.CloseWithError(io.ErrClosedPipe)
	if err != nil {
		return nil
	}
	return response
}
