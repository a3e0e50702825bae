package http

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// A contended quota is decided once the ledger has counted. The larger
// its lag, the longer the client waits.
func TestContendedRequestsWaitForTheLedger(t *testing.T) {
	for lag, want := range map[time.Duration]string{0: "1", 200 * time.Millisecond: "1", 12 * time.Second: "12", time.Hour: "30"} {
		for stage, found := range map[string]int64{"before the body": 1000, "behind it": 999} {
			in := newIntake(t, &memoryLog{}, ingest.Account{Limit: 1000, NextLimit: 1000})
			in.Service.Gate.Found(ingest.Charge{Organization: "org_1", Project: "prj_1", Key: "key_1", At: start.Add(-lag), Bytes: found, Offset: 1})
			w := serve(in, newPost(bytes.NewReader(body(1)), "Idempotency-Key", "k"))
			if got := w.Header().Get("Retry-After"); w.Code != 429 || !strings.Contains(w.Body.String(), codeOverloaded) || got != want {
				t.Errorf("%s, a ledger late by %s: %d %s, Retry-After %q, want %s", stage, lag, w.Code, w.Body, got, want)
			}
		}
	}
}

// every calls do at once and then each period until stop is closed.
func every(period time.Duration, stop <-chan struct{}, do func()) {
	for {
		do()
		select {
		case <-stop:
			return
		case <-time.After(period):
		}
	}
}

// Ordinary bodies of one organization are limited to its share while
// another sends: none is refused, and the other's don't wait.
func TestOrdinaryBodiesAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, &memoryLog{}, plenty)
		other := addOrganization(t, in, "org_2")
		in.Bodies = NewBodies(BodyLimits{Bytes: 189 << 20, Max: 16 << 20, Requests: 256, LargeBodies: 8, Throttle: admission.ThrottleLimit{Ordinary: 1 << 20}}, time.Now)
		ordinary := fmt.Sprintf(`{"logs":[%s],"x":%q}`, sampleEntry(0), bytes.Repeat([]byte("y"), 512<<10))
		post := func(body, key string) (took time.Duration) {
			begun := time.Now()
			if w := serve(in, newPost(strings.NewReader(body), "X-Api-Key", key)); w.Code != 200 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			return time.Since(begun)
		}
		for range 8 {
			if took := post(ordinary, secret); took != 0 {
				t.Errorf("alone it took %s", took)
			}
		}
		post(string(body(1)), other)
		begun := time.Now()
		for range 8 {
			post(ordinary, secret)
		}
		if took := time.Since(begun); took < 2*time.Second || took > 4*time.Second {
			t.Errorf("4 MiB at 1 MiB a second, of which the first may come at once, took %s", took)
		}
		begun = time.Now()
		small := string(body(1000))
		for range 4 {
			post(small, secret)
		}
		if took, least := time.Since(begun), time.Duration(3*(len(small)+1000*perEntry))*time.Second>>20; took < least {
			t.Errorf("4,000 entries took %s, want at least %s: what they are beside their text counts", took, least)
		}
		if took := post(string(body(1)), other); took != 0 {
			t.Errorf("another organization's took %s", took)
		}
		checkCharged(t, in, false)
	})
}

// A body in pieces of a byte is charged for its work.
func TestPiecesOfBodiesAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, &memoryLog{}, plenty)
		other := addOrganization(t, in, "org_2")
		in.Bodies = NewBodies(BodyLimits{Bytes: 189 << 20, Max: 16 << 20, Requests: 256, LargeBodies: 8, Throttle: admission.ThrottleLimit{Ordinary: 1 << 20}}, time.Now)
		serve(in, newPost(bytes.NewReader(body(1)), "X-Api-Key", other))
		text, begun := body(1), time.Now()
		for range 3 {
			if w := serve(in, newPost(iotest.OneByteReader(bytes.NewReader(text)))); w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		least := time.Duration(2*len(text)*perRead-1<<20) * time.Second >> 20
		if took := time.Since(begun); took < least {
			t.Errorf("three bodies of %d pieces took %s, want at least %s", len(text), took, least)
		}
	})
}

// While another organization sends, one's large bodies are limited to
// its share and number; beyond, they are refused without charge. Small
// ones, and an organization that is alone, are not limited.
func TestLargeBodiesAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, &memoryLog{}, plenty)
		other := addOrganization(t, in, "org_2")
		in.Bodies = NewBodies(BodyLimits{Bytes: 189 << 20, Max: 16 << 20, Requests: 256, LargeBodies: 8,
			Throttle: admission.ThrottleLimit{PerSecond: 1 << 20, Bodies: 2}}, time.Now)
		large := fmt.Sprintf(`{"logs":[%s],"x":%q}`, sampleEntry(0), bytes.Repeat([]byte("y"), 7<<20))
		post := func(body, key string) (answer string, took time.Duration) {
			begun := time.Now()
			w := serve(in, newPost(strings.NewReader(body), "X-Api-Key", key))
			return fmt.Sprint(w.Code, " ", w.Body), time.Since(begun)
		}
		if answer, took := post(large, secret); !strings.HasPrefix(answer, "200") || took != 0 {
			t.Errorf("alone it took %s: %s", took, answer)
		}
		stop := make(chan struct{})
		defer close(stop)
		go every(time.Second, stop, func() { post(string(body(1)), other) })
		synctest.Wait() // until it has posted first
		answers := make(chan string, 3)
		for range cap(answers) { // all at once: that it is too much shows when they have begun
			go func() {
				answer, _ := post(large, secret)
				answers <- answer
			}()
		}
		if refused := <-answers; !strings.HasPrefix(refused, "429") || !strings.Contains(refused, codeOverloaded) {
			t.Errorf("one of three at once: %s", refused)
		}
		for _, key := range []string{secret, other} {
			if answer, took := post(string(body(1)), key); !strings.HasPrefix(answer, "200") || took != 0 {
				t.Errorf("a small one took %s: %s", took, answer)
			}
		}
		begun := time.Now()
		for range 2 {
			if answer := <-answers; !strings.HasPrefix(answer, "200") {
				t.Errorf("one of the other two: %s", answer)
			}
		}
		if took := time.Since(begun); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("14 MiB at 1 MiB a second took %s", took)
		}
		checkCharged(t, in, false)
	})
}

// A body whose client leaves while it waits for its organization's
// share is not accepted.
func TestWhoLeavesWaitsForNoShare(t *testing.T) {
	for _, protocol := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", protocol), func(t *testing.T) {
			log := &memoryLog{}
			in := strictly(newIntake(t, log, plenty))
			in.Bodies = NewBodies(BodyLimits{Bytes: 32 << 20, Max: 1 << 20, Requests: 8, LargeBodies: 8, Throttle: admission.ThrottleLimit{Ordinary: 100}}, in.Service.Clock)
			in.Bodies.throttle.Note("org_2")
			in.Bodies.throttle.Note("org_1")
			in.Bodies.throttle.Received("org_1", 590)
			ended := make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				httpapi.Handle(in.Post)(w, r)
			}))
			server.EnableHTTP2 = protocol == 2
			server.StartTLS()
			defer server.Close()
			ctx, leave := context.WithCancel(t.Context())
			r := newPost(bytes.NewReader(body(1))).WithContext(ctx)
			r.RequestURI = ""
			var err error
			if r.URL, err = url.Parse(server.URL); err != nil {
				t.Fatal(err)
			}
			go func() {
				if response, err := server.Client().Do(r); err == nil {
					_ = response.Body.Close()
				}
			}()
			testenv.Eventually(t, func() error {
				if use := in.Bodies.Use(); use.Throttled != 1 {
					return fmt.Errorf("%+v", use)
				}
				return nil
			})
			leave()
			<-ended
			if use := in.Bodies.Use(); use.Throttled != 0 || use.UnderWay != 0 || len(log.accepted) != 0 {
				t.Errorf("%+v, accepted %d", use, len(log.accepted))
			}
			in.Bodies = testBodies(64<<20, 2<<20, in.Service.Clock)
			checkCharged(t, in, false)
		})
	}
}

// strictly has the smallest waste delay the next request.
func strictly(in *Intake) *Intake {
	in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 1, PerSecond: 1000})
	return in
}

// checkCharged reports whether the last request was charged as waste,
// by the next one.
func checkCharged(t *testing.T, in *Intake, want bool) {
	t.Helper()
	w := serve(in, newPost(bytes.NewReader(body(1))))
	if charged := w.Header().Get("Retry-After") != "" && bytes.Contains(w.Body.Bytes(), []byte("rate_limited")); charged != want {
		t.Errorf("charged %t, want %t: %d %s", charged, want, w.Code, w.Body)
	}
}

// A repeated request is no waste, however often it comes; the same key
// with another body is.
func TestReplaysAreNotCharged(t *testing.T) {
	in := strictly(newIntake(t, &memoryLog{}, plenty))
	for i := range 3 {
		w := serve(in, newPost(bytes.NewReader(body(100)), "Idempotency-Key", "k"))
		if replayed := w.Header().Get("Idempotency-Replayed") == "true"; w.Code != 200 || replayed != (i > 0) {
			t.Fatalf("request %d: %d %s, replayed %t", i, w.Code, w.Body, replayed)
		}
	}
	checkCharged(t, in, false)
	if w := serve(in, newPost(bytes.NewReader(body(99)), "Idempotency-Key", "k")); w.Code != 400 {
		t.Fatalf("another body: %d %s", w.Code, w.Body)
	}
	checkCharged(t, in, true)
}

// The white space of a repeat is as much waste as that of the first.
func TestReplaysAreChargedForWhiteSpace(t *testing.T) {
	in := strictly(newIntake(t, &memoryLog{}, plenty))
	padded := append(bytes.Repeat([]byte(" "), 3*freeWaste), body(1)...)
	serve(in, newPost(bytes.NewReader(padded), "Idempotency-Key", "k"))
	in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 4 * freeWaste, PerSecond: 1000})
	checkCharged(t, in, false)
	if w := serve(in, newPost(bytes.NewReader(padded), "Idempotency-Key", "k")); w.Header().Get("Idempotency-Replayed") != "true" {
		t.Fatalf("the repetition: %d %s", w.Code, w.Body)
	}
	in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 3 * freeWaste, PerSecond: 1000})
	checkCharged(t, in, true)
}

// A request that waits too long for the first of its key is refused and
// not charged as waste.
func TestWaitingForAnotherIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		in := strictly(newIntake(t, log, plenty))
		answers := make(chan *httptest.ResponseRecorder, 2)
		for range cap(answers) {
			go func() { answers <- serve(in, newPost(bytes.NewReader(body(10)), "Idempotency-Key", "k")) }()
		}
		if w := <-answers; w.Code != 429 || !bytes.Contains(w.Body.Bytes(), []byte(codeOverloaded)) {
			t.Errorf("the second: %d %s", w.Code, w.Body)
		}
		close(log.hold)
		if w := <-answers; w.Code != 200 {
			t.Errorf("the first: %d %s", w.Code, w.Body)
		}
		checkCharged(t, in, false)
	})
}

// A request with a contended quota is refused and not charged as waste.
func TestContentionIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		size := int64(len(body(10)))
		in := strictly(newIntake(t, log, ingest.Account{Limit: 3 * size / 2, NextLimit: size}))
		first := make(chan int)
		go func() { first <- serve(in, newPost(bytes.NewReader(body(10)))).Code }()
		synctest.Wait()
		if w := serve(in, newPost(bytes.NewReader(body(10)))); w.Code != 429 || !bytes.Contains(w.Body.Bytes(), []byte(codeOverloaded)) {
			t.Errorf("beside another: %d %s", w.Code, w.Body)
		}
		close(log.hold)
		if code := <-first; code != 200 {
			t.Errorf("the first: %d", code)
		}
		checkCharged(t, in, false)
	})
}

// A body without more memory while it is read is refused and not
// charged as waste.
func TestFullMemoryIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		in := strictly(newIntake(t, log, plenty))
		in.Bodies = testBodies(64<<10*4*reserveShare*holderShare, 1<<20, in.Service.Clock)
		first := make(chan int, 3)
		for range cap(first) {
			go func() { first <- serve(in, newPost(bytes.NewReader(body(100)))).Code }()
		}
		synctest.Wait()
		grows := fmt.Sprintf(`{"logs":[%s],"x":%q}`, sampleEntry(0), bytes.Repeat([]byte("y"), 300<<10))
		if w := serve(in, newPost(strings.NewReader(grows))); w.Code != 429 || !bytes.Contains(w.Body.Bytes(), []byte(codeOverloaded)) {
			t.Errorf("a body that grows: %d %s", w.Code, w.Body)
		}
		close(log.hold)
		for range cap(first) {
			if code := <-first; code != 200 {
				t.Errorf("one of the first: %d", code)
			}
		}
		checkCharged(t, in, false)
	})
}

// A body that grows large beyond its organization's number of large
// ones is refused and not charged as waste.
func TestTooManyLargeBodiesAreNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		in := newIntake(t, log, plenty)
		in.Bodies = NewBodies(BodyLimits{Bytes: 189 << 20, Max: 8 << 20, Requests: 3, LargeBodies: 1}, in.Service.Clock)
		first := make(chan int)
		large := fmt.Sprintf(`{"logs":[%s],"x":%q}`, sampleEntry(0), bytes.Repeat([]byte("y"), 2<<20))
		in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 2<<20 - freeWaste, PerSecond: 1000}) // that of the first alone
		go func() { first <- serve(in, newPost(strings.NewReader(large))).Code }()
		synctest.Wait()
		if w := serve(in, newPost(strings.NewReader(large))); w.Code != 429 || !bytes.Contains(w.Body.Bytes(), []byte(codeOverloaded)) {
			t.Errorf("the second large body: %d %s", w.Code, w.Body)
		}
		close(log.hold)
		if code := <-first; code != 200 {
			t.Errorf("the first: %d", code)
		}
		checkCharged(t, in, false)
	})
}
